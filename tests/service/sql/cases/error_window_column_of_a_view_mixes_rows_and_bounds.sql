-- error: column "late" is neither in GROUP BY nor in an aggregate
-- fixed: window_start, late FROM w => window_start, TRUE FROM w
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(3), x BOOLEAN) WITH ('connector' = 'blackhole');
CREATE VIEW w AS SELECT window_start, window_end, ts > window_start AS late FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE));
INSERT INTO o SELECT window_start, late FROM w GROUP BY window_start, window_end;
