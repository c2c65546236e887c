-- plan: INSERT 1 | SELECT payments.payment_id AS payment_id, payments.amount AS amount | INTO moves delta(moves) | INSERT 2 | FROM refunds AS refunds kafka(refunds @ broker:9092, earliest-offset) [payment_id STRING, amount DECIMAL(18, 2)] | INTO moves delta(moves)
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
CREATE TABLE moves (
    payment_id STRING, amount DECIMAL(18, 2)
) WITH ('connector' = 'delta', 'path' = 'moves');
INSERT INTO moves SELECT payment_id, amount FROM payments UNION ALL SELECT payment_id, -amount FROM refunds;
