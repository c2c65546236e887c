-- error: the offset of TUMBLE, 60000 ms, is not below 60000 ms
-- fixed: INTERVAL '1' MINUTE, INTERVAL '1' MINUTE => INTERVAL '1' MINUTE, INTERVAL '0' MINUTE
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
