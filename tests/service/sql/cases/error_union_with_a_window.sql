-- error: UNION ALL beside a window, a join by event time or 'join.late-rows.wait'
-- fixed:  UNION ALL SELECT id FROM orders => 
-- with: orders
CREATE TABLE p (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO p SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end UNION ALL SELECT id FROM orders;
