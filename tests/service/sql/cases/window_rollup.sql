-- plan: CROSS JOIN UNNEST(ARRAY[0, 1, 2]) AS $sets | GROUP BY window_start, window_end, CASE WHEN IN($sets.element, 0, 1) THEN s.k END AS k0, CASE WHEN IN($sets.element, 0) THEN s.n END AS k1, CASE WHEN IN($sets.element, 0) THEN s.t END AS k2, $sets.element AS k3
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, ROLLUP (k, (n, t));
