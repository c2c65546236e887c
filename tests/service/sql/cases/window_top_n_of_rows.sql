-- plan: WINDOW TUMBLE of s.ts, size 60000 ms | GROUP BY window_start, window_end | ROWS s.amount AS r0, s.k AS r1 | ROW_NUMBER 1 TO 3 PARTITION BY window_start, window_end ORDER BY r0 DESC | SELECT window_start AS at, r1 AS x
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY amount DESC) AS rn FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) WHERE rn <= 3;
