-- plan: INNER JOIN rates AS r json(rates @ broker:9092) [currency STRING NOT NULL, rate DECIMAL(10, 4), at TIMESTAMP(3); key currency] ON o.currency = r.currency | SELECT o.id AS id, r.currency AS name | INTO o blackhole()
-- with: orders
CREATE TABLE rates (currency STRING, rate DECIMAL(10, 4), at TIMESTAMP(3), WATERMARK FOR at AS at, PRIMARY KEY (currency) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT o.id, r.currency FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.proc_time AS r ON o.currency = r.currency;
