-- plan: INNER JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON o.user_id = u.id | SELECT o.id AS id, u.name AS name | INTO o blackhole()
-- with: orders users_computed out_id_name
INSERT INTO o SELECT o.id, u.name FROM orders AS o JOIN users FOR SYSTEM_TIME AS OF u.now_time AS u ON o.user_id = u.id;
