-- plan: GROUP BY window_start, window_end, s.k AS k0, s.t AS k1
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY (window_start, window_end), (k, t);
