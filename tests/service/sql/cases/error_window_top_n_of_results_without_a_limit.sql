-- error: ROW_NUMBER() of a window without a greatest number
-- fixed: WHERE rn > 3 => WHERE rn <= 3
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY x) AS rn FROM (SELECT window_start, window_end, k, SUM(n) AS x FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, k)) WHERE rn > 3;
