-- error: unknown connector "jdbc"
-- fixed: 'jdbc', 'url' = 'jdbc:mysql://db/shop' => 'mysql-cdc', 'hostname' = 'db', 'username' = 'u', 'password' = '${secret:x}', 'database-name' = 'shop'
-- with: orders out_id_name
CREATE TABLE d (id BIGINT, name STRING) WITH ('connector' = 'jdbc', 'url' = 'jdbc:mysql://db/shop', 'table-name' = 'd');
INSERT INTO o SELECT o.id, d.name FROM orders AS o JOIN d FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = d.id;
