-- plan: WATERMARK p.paid_at AS (p.paid_at - INTERVAL '30' SECOND) | WATERMARK rates.changed_at AS (changed_at - INTERVAL '15' SECOND) | LEFT JOIN rates AS r mysql-cdc(shop.rates @ db:3306) [currency STRING NOT NULL, rate DECIMAL(12, 6), changed_at TIMESTAMP(3); key currency] ON p.currency = r.currency AS OF p.paid_at | WAIT until the watermark of p and rates has reached the record's time | LATE records INTO the job's own table | SELECT p.payment_id AS payment_id, (p.amount * r.rate):DECIMAL(31, 8) AS usd | INTO converted delta(converted)
-- with: payments
CREATE TABLE rates (
    currency STRING,
    rate DECIMAL(12, 6),
    changed_at TIMESTAMP(3),
    WATERMARK FOR changed_at AS changed_at - INTERVAL '15' SECOND,
    PRIMARY KEY (currency) NOT ENFORCED
) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'port' = '3306',
    'username' = 'cdc', 'password' = '${secret:db}',
    'database-name' = 'shop', 'table-name' = 'rates'
);
CREATE TABLE converted (
    payment_id STRING, usd DECIMAL(31, 8)
) WITH ('connector' = 'delta', 'path' = 'converted');
INSERT INTO converted
SELECT p.payment_id, p.amount * r.rate
FROM payments AS p
LEFT JOIN rates FOR SYSTEM_TIME AS OF p.paid_at AS r
ON p.currency = r.currency;
