-- plan: FROM payments AS payments kafka(payments @ broker:9092, earliest-offset) newest by payment_id [payment_id STRING, account STRING, amount DECIMAL(18, 2), currency STRING, method STRING, paid_at TIMESTAMP_LTZ(3), proc_time = PROCTIME()]
-- with: payments
CREATE TABLE newest (
    payment_id STRING,
    amount DECIMAL(18, 2),
    PRIMARY KEY (payment_id) NOT ENFORCED
) WITH ('connector' = 'upsert-kafka', 'topic' = 'newest', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO newest SELECT payment_id, amount FROM (
  SELECT payment_id, amount, ROW_NUMBER() OVER (PARTITION BY payment_id ORDER BY proc_time DESC) AS row_num FROM payments)
WHERE row_num = 1;
