-- plan: INSERT 1 | FROM a AS a kafka(a @ broker:9092, earliest-offset) [id BIGINT, p = PROCTIME()] | INSERT 2 | FROM b AS b kafka(c; a @ broker:9092, earliest-offset) [user_id BIGINT, p = PROCTIME()]
-- with: a_plain
CREATE TABLE b (user_id BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'c;a', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o (id) SELECT id FROM a UNION ALL SELECT user_id FROM b;
