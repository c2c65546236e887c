-- error: TUMBLE in GROUP BY takes the time column and 1 interval
-- fixed: GROUP BY TUMBLE(ts) => GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)
-- fixed: TUMBLE_START(ts), TUMBLE_END(ts) => TUMBLE_START(ts, INTERVAL '1' MINUTE), TUMBLE_END(ts, INTERVAL '1' MINUTE)
-- with: orders out_windows
INSERT INTO o SELECT TUMBLE_START(ts), TUMBLE_END(ts), 'x', COUNT(*) FROM orders GROUP BY TUMBLE(ts);
