-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING; key id] ON o.user_id = d.id
-- with: orders out_id_name
CREATE TABLE d (id BIGINT, name STRING) WITH ('connector' = 'jdbc', 'url' = 'jdbc:mysql://db/shop?user=u&useSSL=false&password=p%26w', 'table-name' = 'd');
INSERT INTO o SELECT o.id, d.name FROM orders AS o JOIN d FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = d.id;
