-- plan: INSERT 1 | WHERE (orders.currency <> 'x') | SELECT orders.id AS id, orders.currency AS name | INTO o blackhole() | INSERT 2 | WHERE ('user' <> 'x') | SELECT orders.user_id AS id, 'user' AS name | INTO o blackhole()
-- with: orders out_id_name
CREATE VIEW v AS SELECT id, currency AS c FROM orders UNION ALL SELECT user_id, 'user' FROM orders;
INSERT INTO o SELECT id, c FROM v WHERE c <> 'x';
