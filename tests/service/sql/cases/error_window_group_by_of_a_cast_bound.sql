-- error: an expression over the bounds of the window
-- fixed: GROUP BY CAST(window_start AS DATE), CAST(window_end AS DATE) => GROUP BY window_start, window_end
-- with: s_event_time
CREATE TABLE o (day_ DATE, x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT CAST(window_start AS DATE), COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY CAST(window_start AS DATE), CAST(window_end AS DATE);
