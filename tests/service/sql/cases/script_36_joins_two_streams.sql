-- error: table "refunds" is joined without FOR SYSTEM_TIME AS OF: a regular or interval join, which keeps the rows of both sides
CREATE TABLE payments (
    payment_id STRING,
    account STRING,
    amount DECIMAL(18, 2),
    currency CHAR(3),
    method STRING,
    paid_at TIMESTAMP_LTZ(3),
    proc_time AS PROCTIME(),
    WATERMARK FOR paid_at AS paid_at - INTERVAL '30' SECOND
) WITH (
    'connector' = 'kafka',
    'topic' = 'payments',
    'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
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
