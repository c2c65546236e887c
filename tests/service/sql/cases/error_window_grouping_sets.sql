-- error: a grouping set of GROUP BY has no window_end
-- fixed: (window_start)) => (window_start, window_end))
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY GROUPING SETS ((window_start, window_end), (window_start));
