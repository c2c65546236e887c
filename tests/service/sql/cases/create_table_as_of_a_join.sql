-- plan: INNER JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON orders.user_id = u.id | SELECT orders.id AS id, u.name AS name | INTO kept delta(kept)
-- with: orders users
CREATE TABLE kept COMMENT 'x' WITH ('connector' = 'delta', 'path' = 'kept') AS WITH q AS (SELECT * FROM orders) SELECT q.id, u.name FROM q JOIN users FOR SYSTEM_TIME AS OF q.proc_time AS u ON q.user_id = u.id;
