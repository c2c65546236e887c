-- plan: INTO o delta(out/o, spark writer)
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (k BIGINT, name STRING) WITH ('connector' = 'delta', 'path' = 'out/o', 'sink.writer' = 'spark');
INSERT INTO o SELECT k, name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
