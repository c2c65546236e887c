-- error: GROUP BY takes no ARRAY
-- fixed: window_end, tags => window_end, tags[1]
-- with: s_payload_time
CREATE TABLE o (a TIMESTAMP(3), b BIGINT, c BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, 1, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, tags;
