-- plan: WINDOW SESSION of s.ts, gap 300000 ms | GROUP BY window_start, window_end, s.k AS k0
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, k, COUNT(*)
FROM TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' MINUTE))
GROUP BY window_start, window_end, k;
