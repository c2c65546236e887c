-- plan: INNER JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON o.currency = UPPER(u.name)
-- with: orders users_computed out_id_name
INSERT INTO o SELECT o.id, u.name FROM orders AS o JOIN users FOR SYSTEM_TIME AS OF o.proc_time AS u ON o.currency = u.upper_name;
