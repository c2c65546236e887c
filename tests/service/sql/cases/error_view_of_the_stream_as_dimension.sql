-- error: computed column "p" of a kafka table is not supported
-- fixed: JOIN v FOR SYSTEM_TIME AS OF s.p ON s.k = v.k => JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING, price DECIMAL(10, 2)) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
CREATE VIEW v AS SELECT k, p FROM s;
INSERT INTO o SELECT s.k, s.t FROM s JOIN v FOR SYSTEM_TIME AS OF s.p ON s.k = v.k;
