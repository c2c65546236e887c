-- error: COUNT takes 1 argument, not 2
-- fixed: COUNT(DISTINCT n, t) => COUNT(DISTINCT n)
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(DISTINCT n, t)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
