-- plan: GROUP BY window_start, window_end, CASE WHEN IN($sets.element, 1) THEN s.k END AS k0, $sets.element AS k1
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY GROUPING SETS ((window_start, window_end), (k, window_start, window_end));
