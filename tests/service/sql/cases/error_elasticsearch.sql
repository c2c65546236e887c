-- error: unknown connector "elasticsearch-7"
-- fixed: 'elasticsearch-7', 'hosts' = 'http://e:9200', 'index' = 'e' => 'delta', 'path' = 'e'
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE e (id BIGINT) WITH ('connector' = 'elasticsearch-7', 'hosts' = 'http://e:9200', 'index' = 'e');
INSERT INTO e SELECT id FROM orders;
