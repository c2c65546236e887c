-- plan: FROM s AS s kafka(other @ broker:9092, earliest-offset) [k BIGINT, n INT, t STRING, m INT, p = PROCTIME(), q = (s.k * 2:BIGINT)]
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING, price DECIMAL(10, 2)) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
CREATE TABLE base (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'base', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE s (m INT, q AS k * 2) WITH ('topic' = 'other') LIKE base;
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
