-- error: a window over a window
-- with: orders out_windows
INSERT INTO o SELECT NULL, NULL, 'x', COUNT(*) FROM (SELECT TUMBLE_ROWTIME(ts, INTERVAL '1' HOUR) AS r FROM orders GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)) GROUP BY TUMBLE(r, INTERVAL '1' DAY);
