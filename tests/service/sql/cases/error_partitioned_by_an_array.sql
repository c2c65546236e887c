-- error: PARTITIONED BY names "tags", which is not a scalar physical column or comes twice
-- fixed: PARTITIONED BY (tags) => 
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE lake (id BIGINT, tags ARRAY<STRING>) PARTITIONED BY (tags) WITH ('connector' = 'delta', 'path' = 'lake');
INSERT INTO lake SELECT id, items FROM orders;
