-- error: LAG(…) OVER (…) keeps the rows before each one
-- fixed: SELECT ts, ts, => SELECT window_start, window_end,
-- fixed: LAG(id, 1) OVER (PARTITION BY currency ORDER BY ts) FROM orders => MAX(id) FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)) GROUP BY window_start, window_end, currency
-- with: orders out_windows
INSERT INTO o SELECT ts, ts, currency, LAG(id, 1) OVER (PARTITION BY currency ORDER BY ts) FROM orders;
