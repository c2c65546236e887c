-- plan: SET execution.runtime-mode = streaming | SET pipeline.name = clicks | SET sluice.trigger-interval = 2000 ms | SET table.local-time-zone = UTC
SET 'pipeline.name' = 'clicks';
SET 'sluice.trigger-interval' = '2 s';
SET 'execution.runtime-mode' = 'STREAMING';
SET 'table.local-time-zone' = 'UTC';
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
