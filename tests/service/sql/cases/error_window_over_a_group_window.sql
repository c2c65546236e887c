-- error: a window over a window
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), until TIMESTAMP(3), c STRING, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT NULL, NULL, 'x', COUNT(*) FROM (SELECT TUMBLE_ROWTIME(ts, INTERVAL '1' HOUR) AS r FROM orders GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)) GROUP BY TUMBLE(r, INTERVAL '1' DAY);
