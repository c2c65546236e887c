-- error: a window of instants in the time zone "Asia/Shanghai"
-- fixed: 'Asia/Shanghai' => 'UTC'
SET 'table.local-time-zone' = 'Asia/Shanghai';
-- with: orders_of_instants
CREATE TABLE o (at TIMESTAMP(3), id BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, id FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' DAY));
