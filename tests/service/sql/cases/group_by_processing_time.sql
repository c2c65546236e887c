-- plan: WINDOW TUMBLE of the clock, size 1000 ms | GROUP BY window_start, window_end, orders.currency AS k0 | AGGREGATE COUNT(*):BIGINT AS a0 | SELECT PROCTIME() AS at, k0 AS c, a0 AS n | INTO o blackhole()
-- with: orders
CREATE TABLE o (at TIMESTAMP_LTZ(3), c STRING, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT TUMBLE_PROCTIME(proc_time, INTERVAL '1' SECOND), currency, COUNT(*) FROM orders GROUP BY currency, TUMBLE(proc_time, INTERVAL '1' SECOND);
