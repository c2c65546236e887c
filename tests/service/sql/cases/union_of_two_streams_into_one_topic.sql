-- plan: INSERT 1 | INTO k kafka(k @ broker:9092) | INSERT 2 | INTO k kafka(k @ broker:9092)
CREATE TABLE a (id BIGINT, user_id BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'a', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE b (id STRING, amount INT, `of` STRING METADATA FROM 'topic' VIRTUAL, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'b', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'csv', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE k (x BIGINT) WITH (
    'connector' = 'kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json'
);
INSERT INTO k SELECT id FROM a UNION ALL SELECT amount FROM b;
