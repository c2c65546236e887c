-- plan: WINDOW HOP of s.ts, size 600000 ms, slide 60000 ms
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(HOP(SIZE => INTERVAL '10' MINUTE, DATA => TABLE s, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
