-- plan: INNER JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON o.user_id = u.id | LEFT JOIN rates AS r json(rates @ broker:9092) [currency STRING NOT NULL, rate DECIMAL(10, 4); key currency] ON o.currency = r.currency | WHERE ((r.rate IS NULL) OR (CAST(r.rate AS DECIMAL(14, 4)) > 1:DECIMAL(14, 4))) | SELECT o.id AS id, u.name AS name | INTO o blackhole()
-- with: orders users
CREATE TABLE rates (currency STRING, rate DECIMAL(10, 4), PRIMARY KEY (currency) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT o.id, u.name FROM orders o INNER JOIN users FOR SYSTEM_TIME AS OF o.proc_time u ON o.user_id = u.id LEFT JOIN rates FOR SYSTEM_TIME AS OF o.proc_time r ON r.currency = o.currency WHERE r.rate IS NULL OR r.rate > 1;
