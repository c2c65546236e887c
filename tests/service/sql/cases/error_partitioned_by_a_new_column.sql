-- error: PARTITIONED BY declares a column, as in Hive
-- fixed: (id BIGINT, name STRING) PARTITIONED BY (dt STRING) => (id BIGINT, name STRING, dt STRING) PARTITIONED BY (dt)
-- with: orders
CREATE TABLE o (id BIGINT, name STRING) PARTITIONED BY (dt STRING) WITH ('connector' = 'delta', 'path' = 'o');
INSERT INTO o (id, name) SELECT id, currency FROM orders;
