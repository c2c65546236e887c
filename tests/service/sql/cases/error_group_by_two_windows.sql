-- error: GROUP BY has two windows
-- fixed: , TUMBLE(ts, INTERVAL '2' HOUR), currency => , currency
-- fixed: SELECT ts, ts, => SELECT TUMBLE_START(ts, INTERVAL '1' HOUR), TUMBLE_END(ts, INTERVAL '1' HOUR),
-- with: orders out_windows
INSERT INTO o SELECT ts, ts, currency, COUNT(*) FROM orders GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), TUMBLE(ts, INTERVAL '2' HOUR), currency;
