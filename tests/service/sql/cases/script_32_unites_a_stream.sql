-- plan: INSERT 1 | WHERE (payments.amount >= 1000:DECIMAL(18, 2)) | SELECT payments.payment_id AS payment_id, 'large' AS note | INTO notes delta(notes) | INSERT 2 | WHERE (payments.amount < 1000:DECIMAL(18, 2)) | SELECT payments.payment_id AS payment_id, payments.method AS note | INTO notes delta(notes)
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
CREATE TABLE notes (
    payment_id STRING, note STRING
) WITH ('connector' = 'delta', 'path' = 'notes');
INSERT INTO notes
SELECT payment_id, 'large' AS note FROM payments WHERE amount >= 1000
UNION ALL
SELECT payment_id, method FROM payments WHERE amount < 1000;
