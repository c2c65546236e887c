-- plan: INSERT 1 | SELECT payments.payment_id AS payment_id, payments.amount AS amount | INTO moves delta(moves) | INSERT 2 | FROM refunds AS refunds kafka(refunds @ broker:9092, earliest-offset) [payment_id STRING, amount DECIMAL(18, 2)] | INTO moves delta(moves)
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
CREATE TABLE moves (
    payment_id STRING, amount DECIMAL(18, 2)
) WITH ('connector' = 'delta', 'path' = 'moves');
INSERT INTO moves SELECT payment_id, amount FROM payments UNION ALL SELECT payment_id, -amount FROM refunds;
