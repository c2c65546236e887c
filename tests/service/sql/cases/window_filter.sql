-- plan: AGGREGATE COUNT(*) FILTER (WHERE (s.n > 3)):BIGINT AS a0, SUM(DISTINCT s.n) FILTER (WHERE (s.t = 'a')):INT AS a1
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), a BIGINT, b INT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, COUNT(*) FILTER (WHERE n > 3), SUM(DISTINCT n) FILTER (WHERE t = 'a')
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
