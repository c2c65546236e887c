-- error: view "v" has UNION ALL, so it cannot be a dimension
-- fixed:  UNION ALL SELECT id, name FROM users => 
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
CREATE VIEW v AS SELECT id, name FROM users UNION ALL SELECT id, name FROM users;
INSERT INTO o SELECT o.id, v.name FROM orders AS o JOIN v FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = v.id;
