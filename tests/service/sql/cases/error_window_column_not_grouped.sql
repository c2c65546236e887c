-- error: column "n" is neither in GROUP BY nor in an aggregate
-- fixed: window_start, n => window_start, MAX(n)
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, n
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
