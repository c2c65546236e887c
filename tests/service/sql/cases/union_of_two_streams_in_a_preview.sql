-- plan: INSERT 1 | FROM a AS a kafka(a @ broker:9092, earliest-offset, until latest-offset or 10000 records a partition) [id BIGINT, user_id BIGINT, p = PROCTIME()] | INSERT 2 | SELECT CAST(b.amount AS BIGINT) AS id
-- with: a_orders b_topic
SELECT id FROM a UNION ALL SELECT amount FROM b;
