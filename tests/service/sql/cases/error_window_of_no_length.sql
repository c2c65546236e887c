-- error: SIZE is not above zero
-- fixed: '0' MINUTE => '10' MINUTE
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '0' MINUTE))
GROUP BY window_start, window_end;
