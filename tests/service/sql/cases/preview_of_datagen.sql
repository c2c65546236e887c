-- plan: FROM g AS g datagen(10000/s, 10000 rows) [k BIGINT, p = PROCTIME()]
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING, price DECIMAL(10, 2)) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE g (k BIGINT, p AS PROCTIME()) WITH ('connector' = 'datagen');
SELECT k, name FROM g JOIN d FOR SYSTEM_TIME AS OF g.p ON k = id;
