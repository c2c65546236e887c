-- plan: SELECT orders.id AS id, CAST(WINDOW_START(PROCTIME(), 1000:BIGINT, 0:BIGINT) AS TIMESTAMP(3)) AS window_start | INTO preview print(, 100 rows)
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
SELECT id, window_start FROM TUMBLE(TABLE orders, DESCRIPTOR(proc_time), INTERVAL '1' SECOND);
