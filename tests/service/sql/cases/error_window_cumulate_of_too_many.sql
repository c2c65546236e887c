-- error: windows of CUMULATE, more than 1,440
-- fixed: '1' SECOND => '1' HOUR
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, LAST_VALUE(k)
FROM TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '1' DAY))
GROUP BY window_start, window_end;
