-- error: option "lookup.strategy" of table "s" has no effect on a stream
-- with: d_small
CREATE TABLE e (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'e'
);
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json', 'lookup.strategy' = 'index',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (a STRING, b STRING, c STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT d.name, e.name, f.name FROM s
JOIN d FOR SYSTEM_TIME AS OF p AS d ON d.id = k
JOIN e FOR SYSTEM_TIME AS OF p AS e ON e.id = k
LEFT JOIN d FOR SYSTEM_TIME AS OF p AS f ON f.name = e.name;
