-- error: COUNT(…) OVER (…) keeps the rows before each one
-- fixed: COUNT(*) OVER (ORDER BY ts) => COUNT(*)
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*) OVER (ORDER BY ts)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
