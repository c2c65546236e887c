-- error: WHERE has a column of the window
-- fixed: WHERE window_start > => WHERE TIMESTAMP '2024-01-01 00:00:00' <=
-- with: orders
CREATE TABLE o (id BIGINT, at TIMESTAMP(3), until TIMESTAMP(3), time TIMESTAMP(3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, window_start, window_end, window_time FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) WHERE window_start > ts;
