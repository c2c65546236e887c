-- error: table "k" is kafka, which has no PARTITIONED BY
-- fixed:  PARTITIONED BY (day) => 
-- with: orders
CREATE TABLE k (id BIGINT, day STRING) PARTITIONED BY (day) WITH ('connector' = 'kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json');
INSERT INTO k SELECT id, currency FROM orders;
