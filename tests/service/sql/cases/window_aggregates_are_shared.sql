-- plan: AGGREGATE SUM(s.n):INT AS a0, COUNT(*):BIGINT AS a1 | HAVING (a1 > 1:BIGINT) | SELECT window_start AS at, (CAST(a0 AS BIGINT) / a1) AS x
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, SUM(n) / COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end HAVING COUNT(*) > 1;
