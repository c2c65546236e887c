-- plan: WINDOW CUMULATE of the clock, size 600000 ms, step 120000 ms
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM CUMULATE(DATA => TABLE s, TIMECOL => DESCRIPTOR(p), STEP => INTERVAL '2' MINUTES, SIZE => INTERVAL '10' MINUTES)
GROUP BY window_start, window_end, k;
