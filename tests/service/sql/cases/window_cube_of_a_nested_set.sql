-- plan: CROSS JOIN UNNEST(ARRAY[0, 1, 2, 3, 4, 5]) AS $sets
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, GROUPING SETS (CUBE (k, t), ROLLUP (n));
