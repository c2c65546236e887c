-- error: CREATE TABLE … AS has no WITH
-- fixed: kept AS => kept WITH ('connector' = 'delta', 'path' = 'x') AS
-- with: orders
CREATE TABLE kept AS SELECT id FROM orders;
