-- error: LIMIT is not supported here
-- fixed:  LIMIT 3 => 
-- with: orders
CREATE TABLE kept WITH ('connector' = 'print') AS SELECT id FROM orders LIMIT 3;
