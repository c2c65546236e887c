-- plan: LEFT JOIN currency_rates AS currency_rates mysql-cdc(shop.currency_rates @ db:3306) [currency STRING NOT NULL, conversion_rate DECIMAL(32, 2), update_time TIMESTAMP(3); key currency] ON orders.currency = currency_rates.currency AS OF orders.order_time | SELECT orders.order_id AS order_id, orders.price AS price, orders.currency AS currency, currency_rates.conversion_rate AS conversion_rate, orders.order_time AS order_time | INTO preview print(, 100 rows)
CREATE TABLE orders (order_id STRING, price DECIMAL(32,2), currency STRING, order_time TIMESTAMP(3), WATERMARK FOR order_time AS order_time - INTERVAL '15' SECOND) WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE currency_rates (currency STRING, conversion_rate DECIMAL(32, 2), update_time TIMESTAMP(3), WATERMARK FOR update_time AS update_time, PRIMARY KEY(currency) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'currency_rates');
SELECT order_id, price, orders.currency, conversion_rate, order_time
FROM orders
LEFT JOIN currency_rates FOR SYSTEM_TIME AS OF orders.order_time
ON orders.currency = currency_rates.currency;
