-- plan: WHERE (orders.id > 3:BIGINT) | SELECT orders.id AS id, WINDOW_START(orders.ts, 600000:BIGINT, 0:BIGINT) AS at, (WINDOW_START(orders.ts, 600000:BIGINT, 0:BIGINT) + INTERVAL '600' SECOND) AS until, ((WINDOW_START(orders.ts, 600000:BIGINT, 0:BIGINT) + INTERVAL '600' SECOND) - INTERVAL '0.001' SECOND) AS time | INTO o blackhole()
-- with: orders
CREATE TABLE o (id BIGINT, at TIMESTAMP(3), until TIMESTAMP(3), time TIMESTAMP(3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, window_start, window_end, window_time FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) WHERE id > 3;
