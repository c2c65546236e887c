-- error: expected a value in single quotes, found "true"
-- fixed: true => 'true'
-- with: orders
CREATE TABLE o (id BIGINT, name STRING) WITH ('print-identifier' = true, 'connector' = 'print');
INSERT INTO o SELECT id, currency FROM orders;
