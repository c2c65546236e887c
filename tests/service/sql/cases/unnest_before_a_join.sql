-- plan: CROSS JOIN UNNEST(c.tags) AS t | LEFT JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON CAST(t.element AS BIGINT) = u.id | SELECT c.id AS id, u.name AS name | INTO o blackhole()
CREATE TABLE carts (
    id BIGINT, tags ARRAY<STRING>, items ARRAY<ROW<sku STRING, size INT>>, labels MAP<STRING, STRING>,
    note STRING, p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 'carts', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE users (id BIGINT, name STRING, level INT, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'users'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT c.id, u.name FROM carts AS c CROSS JOIN UNNEST(tags) AS t (tag) LEFT JOIN users FOR SYSTEM_TIME AS OF c.p AS u ON CAST(t.tag AS BIGINT) = u.id;
