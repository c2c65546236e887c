-- error: setting "table.sql-dialect" is "hive", expected default
-- fixed: 'hive' => 'default'
-- with: orders out_id_name
SET 'table.sql-dialect' = 'hive';
INSERT INTO o SELECT id, currency FROM orders;
