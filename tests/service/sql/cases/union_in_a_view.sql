-- plan: INSERT 1 | WHERE (orders.currency <> 'x') | SELECT orders.id AS id, orders.currency AS name | INTO o blackhole() | INSERT 2 | WHERE ('user' <> 'x') | SELECT orders.user_id AS id, 'user' AS name | INTO o blackhole()
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
CREATE VIEW v AS SELECT id, currency AS c FROM orders UNION ALL SELECT user_id, 'user' FROM orders;
INSERT INTO o SELECT id, c FROM v WHERE c <> 'x';
