-- plan: SELECT s.k AS k, s.p AS p, d.id AS id, d.name AS name | INTO o print(row)
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (k BIGINT, p TIMESTAMP_LTZ(3), id BIGINT, name STRING) WITH ('connector' = 'print', 'print-identifier' = 'row');
INSERT INTO o SELECT * FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
