-- plan: SELECT orders.id AS id, WINDOW_START(orders.ts, 600000:BIGINT, 120000:BIGINT) AS at, CASE WHEN (orders.id > 3:BIGINT) THEN ((WINDOW_START(orders.ts, 600000:BIGINT, 120000:BIGINT) + INTERVAL '600' SECOND) + INTERVAL '1' SECOND) END AS until, ((WINDOW_START(orders.ts, 600000:BIGINT, 120000:BIGINT) + INTERVAL '600' SECOND) - INTERVAL '0.001' SECOND) AS time | INTO o blackhole()
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, at TIMESTAMP(3), until TIMESTAMP(3), time TIMESTAMP(3)) WITH ('connector' = 'blackhole');
CREATE VIEW v AS SELECT id, window_start AS a, window_end + INTERVAL '1' SECOND AS b, window_time AS c FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' MINUTES, INTERVAL '2' MINUTES));
INSERT INTO o SELECT id, a, CASE WHEN id > 3 THEN b END, c FROM v;
