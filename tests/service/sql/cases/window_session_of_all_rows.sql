-- plan: WINDOW SESSION of s.ts, gap 300000 ms | GROUP BY window_start, window_end
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(SESSION(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTE))
GROUP BY window_start, window_end;
