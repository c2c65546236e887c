-- error: option "table-name" is "a.b.c", expected a table, or schema.table, not of a system database
-- fixed: 'a.b.c' => 'b.c'
-- with: orders out_id_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'username' = 'u', 'password' = '${secret:x}', 'table-name' = 'a.b.c');
INSERT INTO o SELECT o.id, d.name FROM orders AS o JOIN d FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = d.id;
