-- error: expected ")", found "'…'"
-- fixed: 'blackhole' => 'print',
-- with: orders
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole' 'print-identifier' = 'x');
INSERT INTO o SELECT id, currency FROM orders;
