-- error: COUNT is inside another aggregate or in GROUP BY
-- fixed: , window_end, COUNT(*) => , window_end
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, COUNT(*);
