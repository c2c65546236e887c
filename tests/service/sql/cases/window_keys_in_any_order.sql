-- plan: GROUP BY window_start, window_end, s.k AS k0 | SELECT window_end AS at, k0 AS x
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_end, k
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY k, window_end, window_start;
