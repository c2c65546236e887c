-- error: SESSION in GROUP BY takes the time column and 1 interval
-- fixed: ts + INTERVAL '1' DAY => ts
-- with: orders out_windows
INSERT INTO o SELECT NULL, NULL, 'x', COUNT(*) FROM orders GROUP BY SESSION(ts + INTERVAL '1' DAY, INTERVAL '5' MINUTE);
