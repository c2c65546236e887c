-- plan: WINDOW HOP of s.ts, size 600000 ms, slide 60000 ms
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTES, INTERVAL '10' MINUTES))
GROUP BY window_start, window_end;
