-- plan: LEFT JOIN rates_history AS rates_history json(rates @ broker:9092) [currency STRING NOT NULL, conversion_rate DECIMAL(32, 2), update_time TIMESTAMP(3); key currency] ON o.currency = rates_history.currency AS OF o.order_time
CREATE TABLE orders (order_id STRING, price DECIMAL(32,2), currency STRING, order_time TIMESTAMP(3), WATERMARK FOR order_time AS order_time) WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE rates_history (currency STRING, conversion_rate DECIMAL(32, 2), update_time TIMESTAMP(3), WATERMARK FOR update_time AS update_time) WITH ('connector' = 'kafka', 'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE VIEW versioned_rates AS
SELECT currency, conversion_rate, update_time
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY update_time DESC) AS rownum FROM rates_history)
WHERE rownum = 1;
SELECT o.order_id, o.price * r.conversion_rate FROM orders AS o LEFT JOIN versioned_rates FOR SYSTEM_TIME AS OF o.order_time AS r ON o.currency = r.currency;
