-- error: option "url" has a login beside option "username"
-- fixed: u:p@ =>
-- with: orders out_id_name
CREATE TABLE d (id BIGINT, name STRING) WITH ('connector' = 'jdbc', 'url' = 'jdbc:mysql://u:p@db/shop', 'username' = 'u', 'password' = '${secret:x}', 'table-name' = 'd');
INSERT INTO o SELECT o.id, d.name FROM orders AS o JOIN d FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = d.id;
