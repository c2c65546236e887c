-- error: STORED is not supported
-- fixed: STORED AS PARQUET => WITH ('connector' = 'delta', 'path' = 'o')
-- with: orders
CREATE TABLE o (id BIGINT, name STRING) STORED AS PARQUET;
INSERT INTO o SELECT id, currency FROM orders;
