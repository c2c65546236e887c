-- error: argument SIZE is given twice
-- fixed: , SIZE=>INTERVAL '1' MINUTE)) => ))
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(DATA=>TABLE s, TIMECOL=>DESCRIPTOR(ts), SIZE=>INTERVAL '1' MINUTE, SIZE=>INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
