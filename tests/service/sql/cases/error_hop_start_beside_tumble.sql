-- error: function HOP_START is not supported TUMBLE(ts, size) stands in GROUP BY
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), until TIMESTAMP(3), c STRING, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT HOP_START(ts, INTERVAL '2' HOUR), NULL, currency, COUNT(*) FROM orders GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), currency;
