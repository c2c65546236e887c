-- error: expected NOT ENFORCED, found "ENFORCED"
-- fixed: (id) ENFORCED => (id) NOT ENFORCED
-- with: orders out_id_name
CREATE TABLE users (id BIGINT, name STRING, level INT, PRIMARY KEY (id) ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'users'
);
INSERT INTO o SELECT o.id, u.name FROM orders AS o JOIN users FOR SYSTEM_TIME AS OF o.proc_time AS u ON o.user_id = u.id;
