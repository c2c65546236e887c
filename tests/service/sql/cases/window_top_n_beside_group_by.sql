-- plan: AGGREGATE SUM(s.n):INT AS a0 | ROW_NUMBER 1 TO 5 PARTITION BY window_start, window_end, k0 ORDER BY a0
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, rn FROM (SELECT window_start, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY SUM(n)) AS rn FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, k) WHERE rn <= 5;
