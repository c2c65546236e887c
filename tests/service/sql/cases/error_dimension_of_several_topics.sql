-- error: table "d" has several topics by "topic", a dimension has one
-- fixed: d1;d2 => d1
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json',
    'topic' = 'd1;d2'
);
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic' = 's', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
