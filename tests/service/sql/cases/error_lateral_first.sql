-- error: LATERAL stands first, where the stream belongs
-- fixed: LATERAL TABLE(orders(ts)) => orders
-- with: orders out_windows
INSERT INTO o SELECT ts, ts, currency, id FROM LATERAL TABLE(orders(ts));
