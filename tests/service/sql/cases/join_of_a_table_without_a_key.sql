-- plan: INNER JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON o.user_id = u.id | SELECT o.id AS id, u.name AS name | INTO o blackhole()
-- with: orders
CREATE TABLE users (id BIGINT, name STRING, level INT) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'users'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT o.id, u.name FROM orders AS o JOIN users FOR SYSTEM_TIME AS OF o.proc_time AS u ON o.user_id = u.id;
