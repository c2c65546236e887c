-- error: GROUP BY without a window keeps a result for every key
-- fixed: SELECT method, => SELECT window_start, window_end, method,
-- fixed: FROM payments GROUP BY => FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(paid_at), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end,
-- with: payments
SELECT method, COUNT(*) AS n, SUM(amount) FROM payments GROUP BY method;
