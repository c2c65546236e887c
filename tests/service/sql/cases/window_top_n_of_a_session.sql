-- plan: WINDOW SESSION of s.ts, gap 3600000 ms | GROUP BY window_start, window_end, s.k AS k0 | ROWS s.amount AS r0, s.t AS r1 | HAVING (r1 <> 'x') | ROW_NUMBER 1 TO 2 PARTITION BY window_start, window_end, k0 ORDER BY r0 DESC
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY amount DESC) AS rn FROM TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1' HOUR)) WHERE t <> 'x') WHERE rn <= 2;
