-- error: unknown column "_source_offset"
-- fixed: d._source_offset => d.id
CREATE TABLE d (id BIGINT) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'json');
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT d._source_offset
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
