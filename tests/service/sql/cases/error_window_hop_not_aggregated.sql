-- error: HOP is not aggregated
-- fixed: SELECT id, => SELECT COUNT(*),
-- fixed: 10' MINUTES)); => 10' MINUTES)) GROUP BY window_start, window_end, window_time;
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, at TIMESTAMP(3), until TIMESTAMP(3), time TIMESTAMP(3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, window_start, window_end, window_time FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES));
