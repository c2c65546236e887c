-- error: an expression over the bounds of the window
-- fixed: window_end, window_start + INTERVAL '1' DAY > ts; => window_end;
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, window_start + INTERVAL '1' DAY > ts;
