-- plan: INNER JOIN d AS d mysql-cdc(crm.d @ db:3307) [id BIGINT NOT NULL, name STRING; key id] ON o.user_id = d.id
-- with: orders out_id_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'jdbc', 'url' = 'jdbc:mariadb://db:3307/shop?useSSL=false', 'username' = 'u', 'password' = '${secret:x}', 'table-name' = 'crm.d', 'lookup.cache' = 'PARTIAL');
INSERT INTO o SELECT o.id, d.name FROM orders AS o JOIN d FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = d.id;
