-- error: Write SESSION(TABLE t PARTITION BY k
-- fixed: (k t), => (k, t),
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, k, COUNT(*)
FROM TABLE(SESSION(TABLE s PARTITION BY (k t), DESCRIPTOR(ts), INTERVAL '5' MINUTE))
GROUP BY window_start, window_end, t, k;
