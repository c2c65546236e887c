-- plan: INSERT 1 | SELECT CAST(CAST(orders.id AS DECIMAL(21, 2)) AS DECIMAL(20, 2)) AS x | INTO p blackhole() | INSERT 2 | SELECT CAST(CAST(CAST(orders.price AS DECIMAL(12, 2)) AS DECIMAL(21, 2)) AS DECIMAL(20, 2)) AS x | INTO p blackhole() | INSERT 3 | SELECT CAST(CAST(1:DECIMAL(12, 2) AS DECIMAL(21, 2)) AS DECIMAL(20, 2)) AS x | INTO p blackhole()
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE p (x DECIMAL(20, 2)) WITH ('connector' = 'blackhole');
INSERT INTO p SELECT id FROM orders UNION ALL (SELECT price FROM orders UNION ALL SELECT 1 FROM orders);
