-- plan: INNER JOIN users AS u mysql-cdc(shop.users @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON o.user_id = u.id | INNER JOIN rates AS r json(rates @ broker:9092) [currency STRING NOT NULL, rate DECIMAL(10, 4); key currency] ON o.currency = r.currency | WHERE (u.level > 1) | SELECT o.id AS id, r.currency AS name | INTO o blackhole()
-- with: orders users
CREATE TABLE rates (currency STRING, rate DECIMAL(10, 4), PRIMARY KEY (currency) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
CREATE VIEW enriched AS SELECT o.*, u.name, u.level FROM orders AS o JOIN users FOR SYSTEM_TIME AS OF o.proc_time AS u ON o.user_id = u.id;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT e.id, r.currency FROM enriched AS e JOIN rates FOR SYSTEM_TIME AS OF e.proc_time AS r ON e.currency = r.currency WHERE e.level > 1;
