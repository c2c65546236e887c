-- error: PARTITION BY has an expression over the bounds of the window
-- fixed: DATE_FORMAT(window_start, 'yyyy') => k
-- with: s_event_time out_bigint
INSERT INTO o SELECT k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, DATE_FORMAT(window_start, 'yyyy') ORDER BY n) AS rn FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) WHERE rn <= 3;
