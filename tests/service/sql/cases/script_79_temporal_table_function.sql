-- error: aggregate SUM without a window and GROUP BY
CREATE TABLE orders (amount BIGINT, currency STRING, o_proctime AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE rates (currency STRING, rate BIGINT, PRIMARY KEY(currency) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'rates');
SELECT SUM(amount * rate) AS amount FROM orders, LATERAL TABLE (rates(o_proctime)) WHERE rates.currency = orders.currency;
