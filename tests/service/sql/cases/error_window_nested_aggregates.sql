-- error: COUNT is inside another aggregate
-- fixed: SUM(COUNT(*)) => SUM(n)
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, SUM(COUNT(*))
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
