-- error: DISTRIBUTED is not supported
-- fixed:  DISTRIBUTED BY (id) INTO 4 BUCKETS => 
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE x (id BIGINT, day STRING) DISTRIBUTED BY (id) INTO 4 BUCKETS WITH ('connector' = 'delta', 'path' = 'x');
INSERT INTO x SELECT id, currency FROM orders;
