-- error: GROUP BY has more than 256 grouping sets
-- fixed: CUBE (k, n, amount, t, ts, k + 1, k + 2, k + 3, k + 4) => GROUPING SETS ((k, n), (k))
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, CUBE (k, n, amount, t, ts, k + 1, k + 2, k + 3, k + 4);
