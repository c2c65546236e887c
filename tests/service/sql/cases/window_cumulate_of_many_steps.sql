-- plan: WINDOW CUMULATE of s.ts, size 86400000 ms, step 1000 ms | GROUP BY window_start, window_end
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '1' DAY))
GROUP BY window_start, window_end;
