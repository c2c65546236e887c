-- error: UNION ALL writes to topic "k"
-- fixed: 'connector' = 'kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json' => 'connector' = 'delta', 'path' = 'k'
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE k (x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json');
INSERT INTO k SELECT id FROM orders UNION ALL SELECT user_id FROM orders;
