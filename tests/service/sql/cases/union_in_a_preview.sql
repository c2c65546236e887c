-- plan: INSERT 1 | SELECT orders.id AS id | INTO preview print(, 100 rows) | INSERT 2 | SELECT orders.user_id AS id | INTO preview print(, 100 rows)
-- with: orders
SELECT id FROM orders UNION ALL SELECT user_id FROM orders;
