-- error: a statement follows the query
-- fixed: SELECT id + 1 FROM c; =>
CREATE TABLE c (id BIGINT) WITH ('connector' = 'kafka', 'topic' = 'c', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
SELECT id FROM c;
SELECT id + 1 FROM c;
