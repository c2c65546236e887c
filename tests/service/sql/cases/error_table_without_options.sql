-- error: table "o" has no option "connector"
-- fixed: name STRING) => name STRING) WITH ('connector' = 'delta', 'path' = 'o')
-- with: orders
CREATE TABLE o (id BIGINT, name STRING);
INSERT INTO o SELECT id, currency FROM orders;
