-- Each order is priced with the rate that was valid when it was made, however late either of them comes.
SET 'pipeline.name' = 'orders-and-rates';
CREATE TABLE rates (
  currency STRING, rate DECIMAL(10, 4), valid_from TIMESTAMP_LTZ(3),
  WATERMARK FOR valid_from AS valid_from, PRIMARY KEY (currency) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'example-rates', 'properties.bootstrap.servers' = '<kafka>',
  'key.format' = 'raw', 'value.format' = 'json', 'value.json.timestamp-format.standard' = 'ISO-8601',
  'scan.watermark.idle-timeout' = '3 s'
);
CREATE TABLE orders (
  id BIGINT, currency STRING, amount DECIMAL(10, 2), ordered_at TIMESTAMP_LTZ(3),
  WATERMARK FOR ordered_at AS ordered_at - INTERVAL '15' MINUTE
) WITH (
  'connector' = 'kafka', 'topic' = 'example-orders', 'properties.bootstrap.servers' = '<kafka>',
  'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE priced (id BIGINT, currency STRING, price DECIMAL(20, 6), ordered_at TIMESTAMP_LTZ(3))
WITH ('connector' = 'delta', 'path' = 'example_priced');
INSERT INTO priced
SELECT o.id, o.currency, o.amount * r.rate, o.ordered_at FROM orders AS o
LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ordered_at AS r ON o.currency = r.currency;
