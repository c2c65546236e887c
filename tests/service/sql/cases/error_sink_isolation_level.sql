-- error: option "properties.isolation.level" of table "o" has no effect on a sink
-- fixed: , 'properties.isolation.level' = 'read_committed' =>
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH (
    'connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json', 'properties.isolation.level' = 'read_committed'
);
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
