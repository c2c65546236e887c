-- error: SUM takes a number, not STRING
-- fixed: SUM(t) => SUM(CAST(t AS BIGINT))
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, SUM(t)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
