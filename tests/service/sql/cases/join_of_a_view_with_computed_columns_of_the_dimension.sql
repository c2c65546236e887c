-- plan: LEFT JOIN users AS users mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON o.user_id = users.id AND (users.level > 3) | SELECT o.id AS id, CASE WHEN (users.id IS NOT NULL) THEN UPPER(users.name) END AS name | INTO o blackhole()
-- with: orders users_computed
CREATE VIEW good AS SELECT id, upper_name AS n FROM users WHERE level > 3;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT o.id, g.n FROM orders AS o LEFT JOIN good FOR SYSTEM_TIME AS OF o.proc_time AS g ON o.user_id = g.id;
