-- plan: SELECT s.interval AS x
CREATE TABLE d (id BIGINT, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, interval INT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x INT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT interval FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
