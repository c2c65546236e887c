-- error: SUM(*) has no effect
-- fixed: SUM(*) => SUM(n)
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, SUM(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
