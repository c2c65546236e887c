-- plan: SELECT orders.id AS id, CAST(WINDOW_START(PROCTIME(), 1000:BIGINT, 0:BIGINT) AS TIMESTAMP(3)) AS window_start | INTO preview print(, 100 rows)
-- with: orders
SELECT id, window_start FROM TUMBLE(TABLE orders, DESCRIPTOR(proc_time), INTERVAL '1' SECOND);
