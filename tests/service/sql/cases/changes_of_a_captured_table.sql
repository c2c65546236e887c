-- plan: FROM d AS d mysql-cdc(shop.d @ db:3306) changes by id [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2)] | INNER JOIN d AS x mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON d.id = x.id | INTO o upsert-kafka(o @ broker:9092, key k) NOT NULL k
-- with: d_price
CREATE TABLE o (k BIGINT, name STRING, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
CREATE VIEW v AS SELECT * FROM d;
INSERT INTO o SELECT v.id, x.name FROM v JOIN d FOR SYSTEM_TIME AS OF PROCTIME() AS x ON v.id = x.id;
