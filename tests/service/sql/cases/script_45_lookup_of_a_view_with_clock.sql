-- plan: LEFT JOIN product AS p mysql-cdc(shop.product @ db:3306) [id BIGINT NOT NULL, title STRING, price DECIMAL(10, 2); key id] ON o.product_id = p.id | LEFT JOIN region AS r mysql-cdc(shop.region @ db:3306) [name STRING NOT NULL, manager STRING; key name] ON o.buyer.region = r.name | WHERE (o.qty IS NOT NULL) | SELECT o.order_id AS order_id, p.title AS title, CAST((CAST(o.qty AS DECIMAL(10, 0)) * p.price):DECIMAL(21, 2) AS DECIMAL(20, 2)) AS total, r.manager AS manager | INTO out_orders delta(out_orders)
CREATE TABLE orders (order_id STRING, product_id BIGINT, qty INT, buyer ROW<id BIGINT, region STRING>, ts BIGINT) WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE product (id BIGINT, title STRING, price DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'product');
CREATE TABLE region (name STRING, manager STRING, PRIMARY KEY (name) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'region');
CREATE TABLE out_orders (order_id STRING, title STRING, total DECIMAL(20, 2), manager STRING) WITH ('connector' = 'delta', 'path' = 'out_orders');
CREATE TEMPORARY VIEW timed_orders AS
SELECT o.*, o.buyer.region AS region_name, PROCTIME() AS pt FROM orders o;
INSERT INTO out_orders
SELECT o.order_id, p.title, CAST(o.qty * p.price AS DECIMAL(20, 2)), r.manager
FROM timed_orders AS o
LEFT JOIN product FOR SYSTEM_TIME AS OF o.pt AS p ON o.product_id = p.id
LEFT JOIN region FOR SYSTEM_TIME AS OF o.pt AS r ON o.region_name = r.name
WHERE o.qty IS NOT NULL;
