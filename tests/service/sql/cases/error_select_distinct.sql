-- error: SELECT DISTINCT is not supported
-- fixed: SELECT DISTINCT ts, ts, currency, id FROM orders => SELECT window_start, window_end, currency, COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' DAY)) GROUP BY window_start, window_end, currency
-- with: orders out_windows
INSERT INTO o SELECT DISTINCT ts, ts, currency, id FROM orders;
