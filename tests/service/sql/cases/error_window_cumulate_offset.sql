-- error: the offset of CUMULATE, 86400000 ms, is not below 86400000 ms
-- fixed: , INTERVAL '1' DAY)) => ))
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY, INTERVAL '1' DAY))
GROUP BY window_start, window_end;
