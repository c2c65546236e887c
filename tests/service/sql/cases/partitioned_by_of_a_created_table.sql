-- plan: SELECT orders.id AS id, orders.currency AS day | INTO lake delta(lake, partitioned by day)
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE lake PARTITIONED BY (day) WITH ('connector' = 'delta', 'path' = 'lake') AS SELECT id, currency AS day FROM orders;
