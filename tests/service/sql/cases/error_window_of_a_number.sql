-- error: SIZE is not an INTERVAL
-- fixed: , 60) => , INTERVAL '10' MINUTE)
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), 60))
GROUP BY window_start, window_end;
