-- plan: LEFT JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON o.user_id = u.id | WHERE (CASE WHEN (u.id IS NOT NULL) THEN PROCTIME() END IS NOT NULL) | SELECT o.id AS id, CASE WHEN (u.id IS NOT NULL) THEN UPPER(u.name) END AS name | INTO o blackhole()
-- with: orders users_computed out_id_name
INSERT INTO o SELECT o.id, u.upper_name FROM orders o LEFT JOIN users FOR SYSTEM_TIME AS OF o.proc_time u ON o.user_id = u.id WHERE u.now_time IS NOT NULL;
