-- error: ON has a column of the window
-- fixed: AND d.since < window_start GROUP => GROUP
-- with: d_since s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id AND d.since < window_start GROUP BY window_start, window_end;
