-- error: more than 1,440
-- fixed: '0.001' SECOND => '1' HOUR
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '0.001' SECOND, INTERVAL '1' DAY))
GROUP BY window_start, window_end;
