-- warning: Table "d" is jdbc and is copied whole, then all rows are read each 5 min ('scan.refresh-interval'): between two reads a record meets the rows of the earlier one, where a lookup in Flink asks the database.
-- plan: INNER JOIN d AS d jdbc(postgresql shop.crm.d @ db:5432, read every 300000 ms) [id BIGINT NOT NULL, name STRING; key id] ON o.user_id = d.id
-- with: orders out_id_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop?currentSchema=crm&sslmode=require', 'username' = 'u', 'password' = '${secret:x}', 'table-name' = 'd', 'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.expire-after-write' = '10 min');
INSERT INTO o SELECT o.id, d.name FROM orders AS o JOIN d FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = d.id;
