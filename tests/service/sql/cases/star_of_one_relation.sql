-- plan: SELECT d.id AS id, d.name AS name, s.k AS k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, name STRING, k BIGINT) WITH ('connector' = 'print');
INSERT INTO o SELECT d.*, k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
