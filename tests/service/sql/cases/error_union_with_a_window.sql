-- error: UNION ALL beside a window or a join by event time
-- fixed:  UNION ALL SELECT id FROM orders => 
-- with: orders
CREATE TABLE p (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO p SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end UNION ALL SELECT id FROM orders;
