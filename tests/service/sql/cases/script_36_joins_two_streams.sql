-- error: table "refunds" is joined without FOR SYSTEM_TIME AS OF: a regular or interval join, which keeps the rows of both sides
-- with: payments
CREATE TABLE refunds (
    payment_id STRING,
    amount DECIMAL(18, 2)
) WITH (
    'connector' = 'kafka',
    'topic' = 'refunds',
    'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
SELECT p.payment_id, r.amount FROM payments p JOIN refunds r ON p.payment_id = r.payment_id;
