-- error: MAX takes a number, a text or a time, not BOOLEAN
-- fixed: MAX(n > 1) => MAX(CAST(n > 1 AS INT))
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, MAX(n > 1)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
