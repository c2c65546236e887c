-- plan: INNER JOIN users AS users mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON o.user_id = users.id AND (users.level > 2) | SELECT o.id AS id, users.name AS name | INTO o blackhole()
-- with: orders users out_id_name
INSERT INTO o WITH good AS (SELECT id, name FROM users WHERE level > 2) SELECT o.id, g.name FROM orders AS o JOIN good FOR SYSTEM_TIME AS OF o.proc_time AS g ON o.user_id = g.id;
