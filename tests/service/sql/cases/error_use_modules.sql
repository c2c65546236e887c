-- error: USE MODULES is not supported
-- fixed: USE MODULES core; => 
-- with: orders
USE MODULES core;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, currency FROM orders;
