-- plan: WINDOW TUMBLE of the clock, size 5000 ms | GROUP BY window_start, window_end, payments.method AS k0 | AGGREGATE SUM(payments.amount):DECIMAL(38, 2) AS a0 | SELECT k0 AS method, CAST(window_end AS TIMESTAMP(3)) AS until, a0 AS total | INTO preview print(, 100 rows)
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
SELECT method, TUMBLE_END(proc_time, INTERVAL '5' SECOND) AS until, SUM(amount) AS total FROM payments GROUP BY method, TUMBLE(proc_time, INTERVAL '5' SECOND);
