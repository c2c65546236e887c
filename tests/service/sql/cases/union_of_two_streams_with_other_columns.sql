-- plan: INSERT 1 | FROM a AS a kafka(a @ broker:9092, earliest-offset) [id BIGINT, user_id BIGINT, p = PROCTIME()] | SELECT a.id AS id, 'a' AS name | INSERT 2 | FROM b AS b kafka(b @ broker:9092, earliest-offset, csv) [id STRING, amount INT, of STRING METADATA topic, p = PROCTIME()] | SELECT CAST(b.amount AS BIGINT) AS id, b.of AS name
-- with: a_orders b_topic out_id_name
INSERT INTO o SELECT id, 'a' FROM a UNION ALL SELECT amount, `of` FROM b;
