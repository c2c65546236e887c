-- error: option "scan.refresh-column" is "name", expected a column of the table of an integer or timestamp type
-- fixed: 'scan.refresh-column' = 'name' => 'scan.refresh-column' = 'id'
-- with: orders out_id_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'username' = 'u', 'password' = '${secret:x}', 'table-name' = 'd', 'scan.refresh-column' = 'name');
INSERT INTO o SELECT o.id, d.name FROM orders AS o JOIN d FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = d.id;
