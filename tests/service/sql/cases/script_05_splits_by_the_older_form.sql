-- plan: INSERT 1 | SELECT payments.payment_id AS payment_id, payments.amount AS amount | INTO cards delta(cards) | INSERT 2 | SELECT payments.payment_id AS payment_id | INTO seen print()
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
CREATE TABLE cards (
    payment_id STRING, amount DECIMAL(18, 2)
) WITH ('connector' = 'delta', 'path' = 'cards');
CREATE TABLE seen (payment_id STRING) WITH ('connector' = 'print');
SET execution.checkpointing.interval = 30s;
BEGIN STATEMENT SET;
INSERT INTO cards SELECT payment_id, amount FROM payments;
INSERT INTO seen SELECT payment_id FROM payments;
END;
