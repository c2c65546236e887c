-- plan: INSERT 1 | FROM a AS a kafka(a @ broker:9092, earliest-offset) [id BIGINT, user_id BIGINT, p = PROCTIME()] | INSERT 2 | FROM b AS b kafka(b @ broker:9092, earliest-offset, csv) [id STRING, amount INT, of STRING METADATA topic, p = PROCTIME()]
-- with: a_orders b_topic users_2 out_id_name
INSERT INTO o SELECT a.id, u.name FROM a JOIN users FOR SYSTEM_TIME AS OF a.p AS u ON a.user_id = u.id
UNION ALL SELECT b.amount, u.name FROM b JOIN users FOR SYSTEM_TIME AS OF b.p AS u ON b.amount = u.id;
