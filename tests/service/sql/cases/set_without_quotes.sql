-- plan: SELECT orders.id AS id, orders.currency AS name | INTO o blackhole() | SET execution.runtime-mode = streaming | SET pipeline.name = a job | SET sluice.trigger-interval = 1000 ms | SET table.exec.source.idle-timeout = 5000 ms
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
SET execution.runtime-mode = streaming;
SET pipeline.name = a job;
SET table.exec.source.idle-timeout = 5 s;
SET 'sluice.trigger-interval' = 1s;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, currency FROM orders;
