-- plan: GROUP BY window_start, window_end, CASE WHEN IN($sets.element, 0) THEN s.k END AS k0, $sets.element AS k1
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT TUMBLE_START(ts, INTERVAL '1' MINUTE), COUNT(*)
FROM s GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), CUBE (k);
