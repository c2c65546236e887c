-- plan: INSERT 1 | WHERE (u.name <> 'x') | INSERT 2 | WHERE (u.name <> 'x')
-- with: a_orders b_topic users_2 out_id_name
CREATE VIEW v AS SELECT user_id AS k, p FROM a UNION ALL SELECT amount, p FROM b;
INSERT INTO o SELECT v.k, u.name FROM v JOIN users FOR SYSTEM_TIME AS OF v.p AS u ON v.k = u.id WHERE u.name <> 'x';
