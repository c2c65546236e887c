-- plan: GROUP BY window_start, window_end, s.t AS k0 | ROWS (s.n + 1) AS r0, s.n AS r1, s.k AS r2 | ROW_NUMBER 2 TO 3 PARTITION BY window_start, window_end, k0 ORDER BY r0 NULLS LAST, r1 DESC NULLS FIRST | KEEP (r2 > 5:BIGINT)
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, t ORDER BY n + 1 NULLS LAST, n DESC NULLS FIRST) AS rn FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) WHERE rn BETWEEN 2 AND 3 AND k > 5;
