-- plan: INNER JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON orders.user_id = u.id | WHERE (CAST(orders.price AS DECIMAL(12, 2)) > 3:DECIMAL(12, 2)) | SELECT orders.id AS id, u.name AS name | INTO o blackhole()
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE users (id BIGINT, name STRING, level INT, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'users'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT q.id, u.name FROM (SELECT id, user_id, PROCTIME() AS t FROM orders WHERE price > 3) q JOIN users FOR SYSTEM_TIME AS OF q.t u ON q.user_id = u.id;
