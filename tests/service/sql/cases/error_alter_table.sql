-- error: ALTER statements are not supported
-- fixed: ALTER TABLE orders ADD COLUMN x INT; => 
-- with: orders
ALTER TABLE orders ADD COLUMN x INT; CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, currency FROM orders;
