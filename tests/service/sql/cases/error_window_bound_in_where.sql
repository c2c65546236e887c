-- error: WHERE has a column of the window
-- fixed: WHERE window_start > ts GROUP BY window_start, window_end; => GROUP BY window_start, window_end HAVING window_start > TIMESTAMP '2024-01-01 00:00:00';
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
WHERE window_start > ts GROUP BY window_start, window_end;
