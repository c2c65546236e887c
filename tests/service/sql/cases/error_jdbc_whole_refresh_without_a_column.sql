-- error: option "scan.whole-refresh-interval" needs "scan.refresh-column"
-- fixed: 'scan.whole-refresh-interval' = '2 h' => 'scan.whole-refresh-interval' = '2 h', 'scan.refresh-column' = 'id'
-- with: orders out_id_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'username' = 'u', 'password' = '${secret:x}', 'table-name' = 'd', 'scan.whole-refresh-interval' = '2 h');
INSERT INTO o SELECT o.id, d.name FROM orders AS o JOIN d FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = d.id;
