-- error: is datagen, which cannot be a dimension
-- fixed: JOIN g FOR SYSTEM_TIME AS OF s.p ON s.k = g.id => JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id
CREATE TABLE g (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'datagen');
CREATE TABLE d (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092',
    'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k FROM s JOIN g FOR SYSTEM_TIME AS OF s.p ON s.k = g.id;
