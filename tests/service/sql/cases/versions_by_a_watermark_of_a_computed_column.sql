-- plan: WATERMARK o.ts AS (o.ts - INTERVAL '5' SECOND) | WATERMARK users.at AS (at - INTERVAL '86400' SECOND) | INNER JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT, at TIMESTAMP(3); key id] ON o.user_id = u.id AS OF o.ts | WAIT until the watermark of o and users has reached the record's time | LATE records INTO the job's own table | SELECT o.id AS id, u.name AS name | INTO o blackhole()
-- with: orders
CREATE TABLE users (id BIGINT, name STRING, level INT, at TIMESTAMP(3), earlier AS at - INTERVAL '1' DAY, WATERMARK FOR at AS earlier, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'users'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT o.id, u.name FROM orders AS o JOIN users FOR SYSTEM_TIME AS OF o.ts AS u ON o.user_id = u.id;
