-- error: connector "delta" has no option "table-path"
-- fixed: 'table-path' => 'path'
-- with: orders
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'delta', 'table-path' = 'o');
INSERT INTO o SELECT id, currency FROM orders;
