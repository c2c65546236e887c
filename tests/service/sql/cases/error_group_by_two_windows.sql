-- error: GROUP BY has two windows
-- fixed: , TUMBLE(ts, INTERVAL '2' HOUR), currency => , currency
-- fixed: SELECT ts, ts, => SELECT TUMBLE_START(ts, INTERVAL '1' HOUR), TUMBLE_END(ts, INTERVAL '1' HOUR),
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), until TIMESTAMP(3), c STRING, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ts, ts, currency, COUNT(*) FROM orders GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), TUMBLE(ts, INTERVAL '2' HOUR), currency;
