-- error: table "d" has no primary key, and its records are changes of rows
-- fixed: name STRING) WITH => name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH
CREATE TABLE d (id BIGINT, name STRING) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json'
);
CREATE TABLE s (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
