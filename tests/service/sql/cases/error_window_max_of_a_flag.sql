-- error: MAX takes a number, a text or a time, not BOOLEAN
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, MAX(n > 1)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
