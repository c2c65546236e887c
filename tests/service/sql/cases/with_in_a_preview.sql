-- plan: SELECT orders.id AS id | INTO preview print(, 5 rows)
-- with: orders
WITH x AS (SELECT id FROM orders) SELECT * FROM x LIMIT 5;
