-- error: unknown database "shop"
-- fixed: DROP DATABASE shop; => 
-- with: orders
DROP DATABASE shop;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, currency FROM orders;
