-- error: TUMBLE in GROUP BY takes the time column and 1 interval
-- fixed: GROUP BY TUMBLE(ts) => GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)
-- fixed: TUMBLE_START(ts), TUMBLE_END(ts) => TUMBLE_START(ts, INTERVAL '1' MINUTE), TUMBLE_END(ts, INTERVAL '1' MINUTE)
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), until TIMESTAMP(3), c STRING, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT TUMBLE_START(ts), TUMBLE_END(ts), 'x', COUNT(*) FROM orders GROUP BY TUMBLE(ts);
