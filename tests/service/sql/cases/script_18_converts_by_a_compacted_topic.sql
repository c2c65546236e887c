-- plan: INNER JOIN rates AS r json(rates @ broker:9092) [currency STRING NOT NULL, rate DECIMAL(12, 6); key currency] ON p.currency = r.currency | SELECT p.payment_id AS payment_id, (p.amount * r.rate):DECIMAL(31, 8) AS usd | INTO converted delta(converted)
-- with: payments
CREATE TABLE rates (
    currency STRING,
    rate DECIMAL(12, 6),
    PRIMARY KEY (currency) NOT ENFORCED
) WITH ('connector' = 'upsert-kafka', 'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE converted (
    payment_id STRING, usd DECIMAL(31, 8)
) WITH ('connector' = 'delta', 'path' = 'converted');
INSERT INTO converted SELECT p.payment_id, p.amount * r.rate FROM payments AS p JOIN rates FOR SYSTEM_TIME AS OF p.proc_time AS r ON p.currency = r.currency;
