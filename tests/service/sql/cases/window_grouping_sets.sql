-- plan: CROSS JOIN UNNEST(ARRAY[0, 1, 2]) AS $sets | GROUP BY window_start, window_end, CASE WHEN IN($sets.element, 0, 2) THEN s.k END AS k0, CASE WHEN IN($sets.element, 0) THEN s.t END AS k1, $sets.element AS k2
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, GROUPING SETS ((k, t), (), k);
