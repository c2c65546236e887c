-- plan: INNER JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON o.user_id = u.id | SELECT o.id AS id, u.name AS name | INTO o blackhole()
-- with: orders users out_id_name
INSERT INTO o SELECT /*+ LOOKUP('table'='u', 'retry-predicate'='lookup_miss', 'retry-strategy'='fixed_delay', 'fixed-delay'='10s', 'max-attempts'='3'), STATE_TTL('o' = '1d') */ o.id, u.name FROM orders AS o JOIN users FOR SYSTEM_TIME AS OF o.proc_time AS u ON o.user_id = u.id;
