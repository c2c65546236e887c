-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND) | WINDOW TUMBLE of s.ts, size 60000 ms | GROUP BY window_start, window_end | AGGREGATE COUNT(*):BIGINT AS a0 | EMIT windows when the watermark has reached their end | LATE records INTO the job's own table | SELECT window_start AS at, a0 AS x
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
