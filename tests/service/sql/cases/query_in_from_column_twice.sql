-- plan: SELECT orders.id AS id, orders.currency AS name | INTO o blackhole()
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id0, currency FROM (SELECT user_id AS id, id, currency FROM orders) AS q;
