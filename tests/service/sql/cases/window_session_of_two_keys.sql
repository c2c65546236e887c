-- plan: GROUP BY window_start, window_end, s.t AS k0, s.k AS k1
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, k, COUNT(*)
FROM TABLE(SESSION(TABLE s PARTITION BY k, t, DESCRIPTOR(ts), INTERVAL '5' MINUTE))
GROUP BY window_start, window_end, t, k;
