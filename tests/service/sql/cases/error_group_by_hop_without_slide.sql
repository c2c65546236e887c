-- error: HOP in GROUP BY takes the time column and 2 intervals
-- fixed: INTERVAL '10' => INTERVAL '1' MINUTE, INTERVAL '10'
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), until TIMESTAMP(3), c STRING, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT NULL, NULL, 'x', COUNT(*) FROM orders GROUP BY HOP(ts, INTERVAL '10' MINUTE);
