-- error: GROUPING has an argument that is not in GROUP BY
-- fixed: GROUPING(n) => GROUPING(k)
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, GROUPING(n)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, ROLLUP (k);
