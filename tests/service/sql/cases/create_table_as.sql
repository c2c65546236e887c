-- plan: WHERE (orders.id > 0:BIGINT) | SELECT orders.id AS id, (orders.price * 2:DECIMAL(10, 0)):DECIMAL(21, 2) AS cost, UPPER(orders.currency) AS c | INTO kept delta(kept)
-- with: orders
CREATE TABLE kept WITH ('connector' = 'delta', 'path' = 'kept') AS SELECT id, price * 2 AS cost, UPPER(currency) AS c FROM orders WHERE id > 0;
