-- warning: Table "kept" has no WITH: it is the Delta table of this name in the warehouse, as 'connector' = 'delta', 'path' = 'kept' says.
-- with: orders
CREATE TABLE kept AS SELECT id FROM orders;
