-- error: expected "=", found ";"
-- fixed: SET pipeline.name => SET 'pipeline.name' = 'x'
-- with: orders
SET pipeline.name;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, currency FROM orders;
