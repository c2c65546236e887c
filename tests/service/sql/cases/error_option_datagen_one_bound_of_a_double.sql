-- error: option "fields.r.min" needs "fields.r.max"
-- fixed: 'fields.r.min' = '1' => 'fields.r.min' = '1', 'fields.r.max' = '2'
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, r DOUBLE, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.r.min' = '1'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
