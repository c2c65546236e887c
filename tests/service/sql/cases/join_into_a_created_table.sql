-- plan: INNER JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON o.user_id = u.id | SELECT o.id AS id, u.name AS user_name, (o.price * 2:DECIMAL(10, 0)):DECIMAL(21, 2) AS twice | INTO out_table delta(out)
-- with: orders users
CREATE TABLE out_table WITH ('connector' = 'delta', 'path' = 'out') AS SELECT o.id, u.name AS user_name, o.price * 2 AS twice FROM orders AS o JOIN users FOR SYSTEM_TIME AS OF o.proc_time AS u ON o.user_id = u.id;
