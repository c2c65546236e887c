-- plan: AGGREGATE SUM(s.amount):DECIMAL(38, 3) AS a0, AVG(s.amount):DECIMAL(38, 6) AS a1, MAX(s.amount):DECIMAL(8, 3) AS a2
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(3), a DECIMAL(38, 3), b DECIMAL(38, 6), c DECIMAL(8, 3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, SUM(amount), AVG(amount), MAX(amount)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
