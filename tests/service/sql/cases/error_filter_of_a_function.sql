-- error: FILTER is not supported here
-- fixed:  FILTER (WHERE id > 3) => 
-- with: orders out_windows
INSERT INTO o SELECT ts, ts, UPPER(currency) FILTER (WHERE id > 3), id FROM orders;
