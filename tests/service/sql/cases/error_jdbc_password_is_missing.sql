-- error: option "password" is missing
-- fixed: u@db => u:p@db
-- with: orders out_id_name
CREATE TABLE d (id BIGINT, name STRING) WITH ('connector' = 'jdbc', 'url' = 'jdbc:mysql://u@db/shop', 'table-name' = 'd');
INSERT INTO o SELECT o.id, d.name FROM orders AS o JOIN d FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = d.id;
