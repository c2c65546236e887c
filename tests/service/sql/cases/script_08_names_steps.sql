-- plan: WHERE ((payments.amount > 5000:DECIMAL(18, 2)) AND (COALESCE(payments.method, 'unknown') <> 'invoice')) | SELECT payments.account AS account, payments.amount AS amount, COALESCE(payments.method, 'unknown') AS reason | INTO risky delta(risky)
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
CREATE TABLE risky (
    account STRING, amount DECIMAL(18, 2), reason STRING
) WITH ('connector' = 'delta', 'path' = 'risky');
INSERT INTO risky
WITH large AS (
  SELECT account, amount, method FROM payments WHERE amount > 5000
), labelled AS (
  SELECT account, amount, COALESCE(method, 'unknown') AS reason FROM large
)
SELECT account, amount, reason FROM labelled WHERE reason <> 'invoice';
