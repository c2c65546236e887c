-- error: option "table-name" is "mysql.user", expected a table, or schema.table, not of a system database
-- fixed: 'mysql.user' => 'd'
-- with: orders out_id_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'jdbc', 'url' = 'jdbc:mysql://db/shop', 'username' = 'u', 'password' = '${secret:x}', 'table-name' = 'mysql.user');
INSERT INTO o SELECT o.id, d.name FROM orders AS o JOIN d FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = d.id;
