-- plan: INNER JOIN d AS d jdbc(mysql shop.d @ db:3306, read every 10000 ms by id, all rows every 3600000 ms) [id BIGINT NOT NULL, name STRING; key id] ON o.user_id = d.id
-- with: orders out_id_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'jdbc', 'url' = 'jdbc:mysql://db/shop', 'username' = 'u', 'password' = '${secret:x}', 'table-name' = 'd', 'scan.refresh-interval' = '10 s', 'scan.refresh-column' = 'id');
INSERT INTO o SELECT o.id, d.name FROM orders AS o JOIN d FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = d.id;
