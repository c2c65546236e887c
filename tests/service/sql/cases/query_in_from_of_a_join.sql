-- plan: LEFT JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON o.user_id = u.id | WHERE (u.level > 3) | SELECT o.id AS id, u.name AS name | INTO o blackhole()
-- with: orders users out_id_name
INSERT INTO o SELECT id, name FROM (SELECT o.id, u.name, u.level FROM orders o LEFT JOIN users FOR SYSTEM_TIME AS OF o.proc_time AS u ON o.user_id = u.id) WHERE level > 3;
