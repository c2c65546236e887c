-- plan: INSERT 1 | FROM a AS a kafka(a @ broker:9092, earliest-offset) [id BIGINT, user_id BIGINT, p = PROCTIME()] | INSERT 2 | FROM b AS b kafka(b @ broker:9092, earliest-offset, csv) [id STRING, amount INT, of STRING METADATA topic, p = PROCTIME()] | INSERT 3 | FROM a AS a kafka(a @ broker:9092, earliest-offset) [id BIGINT, user_id BIGINT, p = PROCTIME()]
CREATE TABLE a (id BIGINT, user_id BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'a', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE b (id STRING, amount INT, `of` STRING METADATA FROM 'topic' VIRTUAL, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'b', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'csv', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
EXECUTE STATEMENT SET BEGIN INSERT INTO o SELECT id, 'a' FROM a; INSERT INTO o (id) SELECT amount FROM b; INSERT INTO o (id) SELECT user_id FROM a; END;
