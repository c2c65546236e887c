-- error: column "ys" is ARRAY<INT>, whose parts csv cannot tell apart
-- fixed: 'csv.array-element-delimiter' = '-' => 'csv.array-element-delimiter' = '|'
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
CREATE TABLE o (ys ARRAY<INT>) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'csv', 'csv.array-element-delimiter' = '-');
INSERT INTO o SELECT CAST(NULL AS ARRAY<INT>) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
