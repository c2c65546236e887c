-- plan: WINDOW TUMBLE of the clock, size 5000 ms | GROUP BY window_start, window_end, payments.method AS k0 | AGGREGATE SUM(payments.amount):DECIMAL(38, 2) AS a0 | SELECT k0 AS method, CAST(window_end AS TIMESTAMP(3)) AS until, a0 AS total | INTO preview print(, 100 rows)
-- with: payments
SELECT method, TUMBLE_END(proc_time, INTERVAL '5' SECOND) AS until, SUM(amount) AS total FROM payments GROUP BY method, TUMBLE(proc_time, INTERVAL '5' SECOND);
