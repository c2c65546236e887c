-- error: UPPER is not an aggregate function
-- fixed: UPPER(DISTINCT t) => MAX(DISTINCT t)
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(3), x STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, UPPER(DISTINCT t)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
