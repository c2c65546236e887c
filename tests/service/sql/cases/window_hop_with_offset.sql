-- plan: WINDOW HOP of s.ts, size 600000 ms, slide 60000 ms, offset 1000 ms
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '10' MINUTE, INTERVAL '1' SECOND))
GROUP BY window_start, window_end;
