-- error: unknown catalog "hive"
-- fixed: USE CATALOG hive; => 
-- with: orders
USE CATALOG hive; CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, currency FROM orders;
