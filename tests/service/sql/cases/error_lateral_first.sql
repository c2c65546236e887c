-- error: LATERAL is the first relation, which must be a stream
-- fixed: LATERAL TABLE(orders(ts)) => orders
-- with: orders out_windows
INSERT INTO o SELECT ts, ts, currency, id FROM LATERAL TABLE(orders(ts));
