-- error: CREATE TABLE … AS declares columns
-- fixed:  (id BIGINT) WITH =>  WITH
-- with: orders
CREATE TABLE kept (id BIGINT) WITH ('connector' = 'print') AS SELECT id FROM orders;
