-- error: is joined twice with different OPTIONS
-- fixed: JOIN d FOR SYSTEM_TIME => JOIN d /*+ OPTIONS('table-name'='e') */ FOR SYSTEM_TIME
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING, price DECIMAL(10, 2)) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, a.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p AS a ON s.k = a.id JOIN d /*+ OPTIONS('table-name'='e') */ FOR SYSTEM_TIME AS OF s.p AS b ON s.n = b.id;
