-- plan: WATERMARK o.ts AS (o.ts - INTERVAL '5' SECOND) | INNER JOIN rates AS r json(rates @ broker:9092) [currency STRING NOT NULL, rate DECIMAL(10, 4); key currency] ON o.currency = r.currency AS OF o.ts | WAIT until the watermark of o has reached the record's time | NEWEST rows of rates, which has no WATERMARK | LATE records INTO the job's own table | SELECT o.id AS id, r.currency AS name | INTO o blackhole()
-- with: orders
CREATE TABLE rates (currency STRING, rate DECIMAL(10, 4), PRIMARY KEY (currency) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT o.id, r.currency FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency;
