-- plan: CROSS JOIN UNNEST(WINDOW_PLACES(orders.ts, 600000:BIGINT, 300000:BIGINT, 0:BIGINT, false)) AS $windows | SELECT orders.id AS id, $windows.element AS at, ($windows.element + INTERVAL '600' SECOND) AS until, (($windows.element + INTERVAL '600' SECOND) - INTERVAL '0.001' SECOND) AS time
-- with: orders
CREATE TABLE o (id BIGINT, at TIMESTAMP(3), until TIMESTAMP(3), time TIMESTAMP(3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, window_start, window_end, window_time FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES));
