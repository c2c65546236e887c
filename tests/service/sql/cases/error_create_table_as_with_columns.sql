-- error: CREATE TABLE … AS with columns of its own
-- fixed:  (id BIGINT) WITH =>  WITH
-- with: orders
CREATE TABLE kept (id BIGINT) WITH ('connector' = 'print') AS SELECT id FROM orders;
