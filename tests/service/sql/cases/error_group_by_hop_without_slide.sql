-- error: HOP in GROUP BY takes the time column and 2 intervals
-- fixed: INTERVAL '10' => INTERVAL '1' MINUTE, INTERVAL '10'
-- with: orders out_windows
INSERT INTO o SELECT NULL, NULL, 'x', COUNT(*) FROM orders GROUP BY HOP(ts, INTERVAL '10' MINUTE);
