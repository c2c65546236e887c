-- error: a comma join keeps the rows of both sides, except LATERAL TABLE(…) and UNNEST(…)
-- with: payments
CREATE TABLE refunds (
    payment_id STRING,
    at TIMESTAMP_LTZ(3),
    WATERMARK FOR at AS at
) WITH (
    'connector' = 'kafka',
    'topic' = 'refunds',
    'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
SELECT p.payment_id FROM payments p, refunds r WHERE p.payment_id = r.payment_id AND r.at BETWEEN p.paid_at AND p.paid_at + INTERVAL '4' HOUR;
