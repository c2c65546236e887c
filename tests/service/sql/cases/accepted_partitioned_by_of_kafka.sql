-- warning: PARTITIONED BY of table "k" has no effect: only delta tables are partitioned by columns.
-- with: orders
CREATE TABLE k (id BIGINT, day STRING) PARTITIONED BY (day) WITH ('connector' = 'kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json');
INSERT INTO k SELECT id, currency FROM orders;
