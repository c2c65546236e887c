-- plan: WINDOW SESSION of s.ts, gap 300000 ms | GROUP BY window_start, window_end, s.k AS k0
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, k, COUNT(*)
FROM TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' MINUTE))
GROUP BY window_start, window_end, k;
