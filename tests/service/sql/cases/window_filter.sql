-- plan: AGGREGATE COUNT(*) FILTER (WHERE (s.n > 3)):BIGINT AS a0, SUM(DISTINCT s.n) FILTER (WHERE (s.t = 'a')):INT AS a1
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(3), a BIGINT, b INT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, COUNT(*) FILTER (WHERE n > 3), SUM(DISTINCT n) FILTER (WHERE t = 'a')
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
