-- plan: SELECT orders.id AS id, orders.currency AS day, 3 AS hour | INTO other delta(other)
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE lake (id BIGINT, day STRING, hour INT) PARTITIONED BY (day, hour) WITH ('connector' = 'delta', 'path' = 'lake');
CREATE TABLE other WITH ('path' = 'other') LIKE lake (EXCLUDING PARTITIONS);
INSERT INTO other SELECT id, currency, 3 FROM orders;
