-- Five orders a second of a generator, joined with a topic that Debezium fills from PostgreSQL.
-- Change a row of the table customers, and the orders from then on show it.
SET 'pipeline.name' = 'captured';
CREATE TABLE customers (
  id BIGINT, name STRING, credit DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'shop.public.customers',
  'properties.bootstrap.servers' = '{servers}', 'format' = 'debezium-json',
  'snapshot.notifications.topic' = 'shop.notifications'
);
CREATE TABLE orders (customer_id BIGINT, amount BIGINT, proctime AS PROCTIME()) WITH (
  'connector' = 'datagen', 'rows-per-second' = '5',
  'fields.customer_id.min' = '1', 'fields.customer_id.max' = '{customers}',
  'fields.amount.min' = '1', 'fields.amount.max' = '100'
);
CREATE TABLE enriched (customer_id BIGINT, amount BIGINT, name STRING, credit DECIMAL(10, 2))
WITH ('connector' = 'print');
INSERT INTO enriched
SELECT o.customer_id, o.amount, c.name, c.credit FROM orders AS o
LEFT JOIN customers FOR SYSTEM_TIME AS OF o.proctime AS c ON o.customer_id = c.id;
