-- plan: GROUP BY window_start, window_end, s.k AS k0 | AGGREGATE SUM(s.n):INT AS a0 | HAVING (a0 > 7) | ROW_NUMBER 1 TO 2 PARTITION BY window_start, window_end ORDER BY a0 DESC, k0 | SELECT window_start AS at, row_number AS x
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY x DESC, k) AS rn FROM (SELECT window_start, window_end, k, SUM(n) AS x FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, k) WHERE x > 7) WHERE 3 > rn;
