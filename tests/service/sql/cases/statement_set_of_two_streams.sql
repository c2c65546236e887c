-- plan: INSERT 1 | FROM a AS a kafka(a @ broker:9092, earliest-offset) [id BIGINT, user_id BIGINT, p = PROCTIME()] | INSERT 2 | FROM b AS b kafka(b @ broker:9092, earliest-offset, csv) [id STRING, amount INT, of STRING METADATA topic, p = PROCTIME()] | INSERT 3 | FROM a AS a kafka(a @ broker:9092, earliest-offset) [id BIGINT, user_id BIGINT, p = PROCTIME()]
-- with: a_orders b_topic out_id_name
EXECUTE STATEMENT SET BEGIN INSERT INTO o SELECT id, 'a' FROM a; INSERT INTO o (id) SELECT amount FROM b; INSERT INTO o (id) SELECT user_id FROM a; END;
