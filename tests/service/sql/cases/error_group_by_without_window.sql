-- error: GROUP BY without a window keeps a result for every key
-- fixed: SELECT NULL, NULL => SELECT window_start, window_end
-- fixed: FROM orders GROUP BY => FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end,
-- with: orders out_windows
INSERT INTO o SELECT NULL, NULL, currency, COUNT(*) FROM orders GROUP BY currency;
