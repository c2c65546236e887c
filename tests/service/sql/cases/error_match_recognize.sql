-- error: MATCH_RECOGNIZE looks for patterns over many records, which no job here keeps
-- fixed: SELECT * FROM orders MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES A.ts AS t PATTERN (A B) DEFINE B AS B.price > 3) => SELECT ts, ts, currency, id FROM orders WHERE price > 3
CREATE TABLE orders (
    id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>,
    ts TIMESTAMP(3), proc_time AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), until TIMESTAMP(3), c STRING, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT * FROM orders MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES A.ts AS t PATTERN (A B) DEFINE B AS B.price > 3);
