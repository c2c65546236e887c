-- plan: INTO o kafka(o @ broker:9092, key x of csv, csv(field-delimiter \t, write-bigdecimal-in-scientific-notation false))
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
CREATE TABLE o (x BIGINT, l ARRAY<INT>) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'csv', 'csv.field-delimiter' = '\t', 'csv.write-bigdecimal-in-scientific-notation' = 'false',
    'key.format' = 'csv', 'key.fields' = 'x');
INSERT INTO o SELECT s.k, CAST(NULL AS ARRAY<INT>) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
