-- plan: SELECT orders.id AS id, orders.user_id AS user_id, orders.currency AS currency, orders.price AS price, orders.items AS items, orders.ts AS ts, orders.proc_time AS proc_time, WINDOW_START(orders.ts, 600000:BIGINT, 0:BIGINT) AS window_start, (WINDOW_START(orders.ts, 600000:BIGINT, 0:BIGINT) + INTERVAL '600' SECOND) AS window_end, ((WINDOW_START(orders.ts, 600000:BIGINT, 0:BIGINT) + INTERVAL '600' SECOND) - INTERVAL '0.001' SECOND) AS window_time | INTO preview print(, 100 rows)
-- with: orders
SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' MINUTES));
