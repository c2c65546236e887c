-- error: a window over a window
-- fixed: TABLE w, => TABLE s,
-- with: s_event_time out_at_bigint
CREATE VIEW w AS SELECT window_time AS ts, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, window_time;
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE w, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
