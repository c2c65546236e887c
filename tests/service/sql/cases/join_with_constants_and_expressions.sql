-- plan: LEFT JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON CAST(UPPER(o.currency) AS BIGINT) = u.id AND ((u.level = 3) AND ((CAST(o.price AS DECIMAL(12, 2)) > 10:DECIMAL(12, 2)) AND (u.name <> o.currency))) | SELECT o.id AS id, u.name AS name | INTO o blackhole()
-- with: orders users out_id_name
INSERT INTO o SELECT o.id, u.name FROM orders AS o LEFT OUTER JOIN users FOR SYSTEM_TIME AS OF o.proc_time AS u ON CAST(UPPER(o.currency) AS BIGINT) = u.id AND u.level = 3 AND o.price > 10 AND u.name <> o.currency;
