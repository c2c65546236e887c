-- Orders that are more than their customer's credit: a table of PostgreSQL, by way of Debezium.
SET 'pipeline.name' = 'orders-and-credit';
CREATE TABLE customers (id BIGINT, name STRING, credit DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'kafka', 'topic' = 'shop.public.customers', 'properties.bootstrap.servers' = '<kafka>',
  'format' = 'debezium-json', 'snapshot.notifications.topic' = 'shop.notifications'
);
CREATE TABLE orders (order_id BIGINT, customer BIGINT, amount DECIMAL(10, 2), proctime AS PROCTIME()) WITH (
  'connector' = 'kafka', 'topic' = 'example-credit-orders', 'properties.bootstrap.servers' = '<kafka>',
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE held (order_id BIGINT, customer STRING, amount DECIMAL(10, 2), why STRING)
WITH ('connector' = 'delta', 'path' = 'example_held');
INSERT INTO held
SELECT o.order_id, c.name, o.amount, CASE WHEN c.id IS NULL THEN 'nobody has this number' ELSE 'above the credit' END
FROM orders AS o
LEFT JOIN customers FOR SYSTEM_TIME AS OF o.proctime AS c ON o.customer = c.id
WHERE c.id IS NULL OR o.amount > c.credit;
