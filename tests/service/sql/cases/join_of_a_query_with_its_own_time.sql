-- plan: INNER JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON orders.user_id = u.id | WHERE (CAST(orders.price AS DECIMAL(12, 2)) > 3:DECIMAL(12, 2)) | SELECT orders.id AS id, u.name AS name | INTO o blackhole()
-- with: orders users out_id_name
INSERT INTO o SELECT q.id, u.name FROM (SELECT id, user_id, PROCTIME() AS t FROM orders WHERE price > 3) q JOIN users FOR SYSTEM_TIME AS OF q.t u ON q.user_id = u.id;
