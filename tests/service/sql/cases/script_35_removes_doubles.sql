-- error: ROW_NUMBER() OVER (…) keeps rows of every key, to number them
-- fixed: , ROW_NUMBER() OVER (PARTITION BY payment_id ORDER BY proc_time DESC) AS row_num => 
-- fixed: WHERE row_num = 1 => 
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
CREATE TABLE newest (
    payment_id STRING,
    amount DECIMAL(18, 2),
    PRIMARY KEY (payment_id) NOT ENFORCED
) WITH ('connector' = 'upsert-kafka', 'topic' = 'newest', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO newest SELECT payment_id, amount FROM (
  SELECT payment_id, amount, ROW_NUMBER() OVER (PARTITION BY payment_id ORDER BY proc_time DESC) AS row_num FROM payments)
WHERE row_num = 1;
