-- error: a window is joined, which keeps the rows of both sides
-- with: orders out_windows
INSERT INTO o SELECT ts, ts, currency, id FROM orders JOIN TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) AS w ON orders.id = w.id;
