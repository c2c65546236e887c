-- error: Write SESSION(TABLE t PARTITION BY k
-- fixed: (k t), => (k, t),
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, k, COUNT(*)
FROM TABLE(SESSION(TABLE s PARTITION BY (k t), DESCRIPTOR(ts), INTERVAL '5' MINUTE))
GROUP BY window_start, window_end, t, k;
