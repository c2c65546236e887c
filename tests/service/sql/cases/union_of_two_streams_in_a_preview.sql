-- plan: INSERT 1 | FROM a AS a kafka(a @ broker:9092, earliest-offset, until latest-offset or 10000 records a partition) [id BIGINT, user_id BIGINT, p = PROCTIME()] | INSERT 2 | SELECT CAST(b.amount AS BIGINT) AS id
CREATE TABLE a (id BIGINT, user_id BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'a', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE b (id STRING, amount INT, `of` STRING METADATA FROM 'topic' VIRTUAL, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'b', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'csv', 'scan.startup.mode' = 'earliest-offset'
);
SELECT id FROM a UNION ALL SELECT amount FROM b;
