-- error: COUNT(…) OVER (…) keeps the rows before each one
-- fixed: SELECT ts, ts, => SELECT window_start, window_end,
-- fixed:  OVER (PARTITION BY currency ORDER BY ts ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) FROM orders =>  FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)) GROUP BY window_start, window_end, currency
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), until TIMESTAMP(3), c STRING, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ts, ts, currency, COUNT(*) OVER (PARTITION BY currency ORDER BY ts ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) FROM orders;
