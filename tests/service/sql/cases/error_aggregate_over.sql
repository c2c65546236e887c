-- error: COUNT(…) OVER (…) keeps the rows before each one
-- fixed: SELECT ts, ts, => SELECT window_start, window_end,
-- fixed:  OVER (PARTITION BY currency ORDER BY ts ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) FROM orders =>  FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)) GROUP BY window_start, window_end, currency
-- with: orders out_windows
INSERT INTO o SELECT ts, ts, currency, COUNT(*) OVER (PARTITION BY currency ORDER BY ts ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) FROM orders;
