-- error: INTERSECT is not supported
-- fixed:  INTERSECT SELECT ts, ts, currency, id FROM orders => 
-- with: orders out_windows
INSERT INTO o SELECT ts, ts, currency, id FROM orders INTERSECT SELECT ts, ts, currency, id FROM orders;
