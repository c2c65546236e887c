-- error: unknown column "levl"
CREATE TABLE d (id INT PRIMARY KEY NOT ENFORCED, dec DECIMAL(6, 2), whole DECIMAL(6, 0), big BIGINT, f FLOAT, r DOUBLE, day_ DATE, ts TIMESTAMP(3), ts6 TIMESTAMP(6)) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (
    k BIGINT, n INT, tiny TINYINT, t STRING, amount DECIMAL(8, 3), r DOUBLE, f FLOAT, ok BOOLEAN,
    b BYTES, dt DATE, tm TIME, ts TIMESTAMP(3), inst TIMESTAMP_LTZ(3), p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.big WHERE levl > 3;
