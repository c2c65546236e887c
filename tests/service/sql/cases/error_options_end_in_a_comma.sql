-- error: expected a key in single quotes, found ")"
-- fixed: 'print', => 'print'
-- with: orders
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'print',);
INSERT INTO o SELECT id, currency FROM orders;
