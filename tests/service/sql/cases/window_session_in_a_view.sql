-- plan: WINDOW SESSION of s.ts, gap 1000 ms | GROUP BY window_start, window_end, s.k AS k0
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), x BIGINT) WITH ('connector' = 'blackhole');
CREATE VIEW w AS SELECT window_start AS a, window_end AS b, k AS key FROM TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1' SECOND));
INSERT INTO o SELECT a, COUNT(*) FROM w GROUP BY key, a, b;
