-- error: TUMBLE_START has other arguments than TUMBLE in GROUP BY
-- fixed: INTERVAL '2' => INTERVAL '1'
-- with: orders out_windows
INSERT INTO o SELECT TUMBLE_START(ts, INTERVAL '2' HOUR), NULL, currency, COUNT(*) FROM orders GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), currency;
