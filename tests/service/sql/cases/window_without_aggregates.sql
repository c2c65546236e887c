-- plan: GROUP BY window_start, window_end, s.k AS k0 | SELECT window_start AS at, k0 AS x
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, k
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, k;
