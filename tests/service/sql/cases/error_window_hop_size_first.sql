-- error: is not a multiple of its slide
-- fixed: INTERVAL '10' MINUTE, INTERVAL '1' MINUTE => INTERVAL '1' MINUTE, INTERVAL '10' MINUTE
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '10' MINUTE, INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
