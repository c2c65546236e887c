-- plan: WINDOW CUMULATE of s.ts, size 86400000 ms, step 3600000 ms, offset -28800000 ms
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY, INTERVAL '-8' HOUR))
GROUP BY window_start, window_end;
