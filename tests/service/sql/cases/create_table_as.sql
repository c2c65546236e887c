-- plan: WHERE (orders.id > 0:BIGINT) | SELECT orders.id AS id, (orders.price * 2:DECIMAL(10, 0)):DECIMAL(21, 2) AS cost, UPPER(orders.currency) AS c | INTO kept delta(kept)
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE kept WITH ('connector' = 'delta', 'path' = 'kept') AS SELECT id, price * 2 AS cost, UPPER(currency) AS c FROM orders WHERE id > 0;
