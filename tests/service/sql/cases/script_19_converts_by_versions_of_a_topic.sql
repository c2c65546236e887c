-- plan: WATERMARK p.paid_at AS (p.paid_at - INTERVAL '30' SECOND) | WATERMARK rates.update_time AS update_time | INNER JOIN rates AS r json(rates @ broker:9092) [currency STRING NOT NULL, rate DECIMAL(12, 6), update_time TIMESTAMP(3); key currency] ON p.currency = r.currency AS OF p.paid_at | WAIT until the watermark of p and rates has reached the record's time | SELECT p.payment_id AS payment_id, (p.amount * r.rate):DECIMAL(31, 8) AS usd
-- with: payments
CREATE TABLE rates (
    currency STRING,
    rate DECIMAL(12, 6),
    update_time TIMESTAMP(3),
    WATERMARK FOR update_time AS update_time,
    PRIMARY KEY (currency) NOT ENFORCED
) WITH ('connector' = 'upsert-kafka', 'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE converted (
    payment_id STRING, usd DECIMAL(31, 8)
) WITH ('connector' = 'delta', 'path' = 'converted');
INSERT INTO converted SELECT p.payment_id, p.amount * r.rate FROM payments AS p JOIN rates FOR SYSTEM_TIME AS OF p.paid_at AS r ON p.currency = r.currency;
