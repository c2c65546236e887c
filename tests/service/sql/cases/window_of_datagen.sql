-- plan: WINDOW TUMBLE of s.ts, size 10000 ms
CREATE TABLE s (n BIGINT, ts AS TO_TIMESTAMP_LTZ(n), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen', 'fields.n.start' = '0', 'fields.n.end' = '99');
CREATE TABLE o (at TIMESTAMP(3), x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECONDS))
GROUP BY window_start, window_end;
