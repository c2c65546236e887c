-- error: the time column "later" of table "users" is computed, and stored rows do not have it
-- fixed: WATERMARK FOR later AS later => WATERMARK FOR at AS at
-- with: orders out_id_name
CREATE TABLE users (id BIGINT, name STRING, level INT, at TIMESTAMP(3), later AS at + INTERVAL '1' DAY, WATERMARK FOR later AS later, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'users'
);
INSERT INTO o SELECT o.id, u.name FROM orders AS o JOIN users FOR SYSTEM_TIME AS OF o.ts AS u ON o.user_id = u.id;
