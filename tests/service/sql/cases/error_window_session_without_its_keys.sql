-- error: PARTITION BY of SESSION and GROUP BY have different keys
-- fixed: TABLE s, => TABLE s PARTITION BY k,
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(SESSION(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTE))
GROUP BY window_start, window_end, k;
