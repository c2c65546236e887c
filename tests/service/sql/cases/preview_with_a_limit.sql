-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset, until latest-offset or 10000 records a partition) [k BIGINT, n INT, t STRING, p = PROCTIME()] | INTO preview print(, 7 rows) | SET pipeline.name = look
SET 'pipeline.name' = 'look';
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING, price DECIMAL(10, 2)) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json'
);
SELECT * FROM s LEFT JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id WHERE n > 1 LIMIT 7;
