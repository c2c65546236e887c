-- error: setting "table.sql-dialect" is "hive", expected default
-- fixed: 'hive' => 'default'
-- with: orders
SET 'table.sql-dialect' = 'hive';
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, currency FROM orders;
