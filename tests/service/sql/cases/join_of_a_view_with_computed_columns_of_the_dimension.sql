-- plan: LEFT JOIN users AS users mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON o.user_id = users.id AND (users.level > 3) | SELECT o.id AS id, CASE WHEN (users.id IS NOT NULL) THEN UPPER(users.name) END AS name | INTO o blackhole()
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE users (id BIGINT, name STRING, level INT, upper_name AS UPPER(name), now_time AS PROCTIME(), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'users'
);
CREATE VIEW good AS SELECT id, upper_name AS n FROM users WHERE level > 3;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT o.id, g.n FROM orders AS o LEFT JOIN good FOR SYSTEM_TIME AS OF o.proc_time AS g ON o.user_id = g.id;
