-- error: is not a multiple of its step
-- fixed: INTERVAL '1' HOUR, INTERVAL '1' MINUTE => INTERVAL '1' MINUTE, INTERVAL '1' HOUR
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
