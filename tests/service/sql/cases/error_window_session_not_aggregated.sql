-- error: SESSION is not aggregated
-- fixed: SELECT window_end, k => SELECT window_end, COUNT(*)
-- fixed: '1' HOUR)); => '1' HOUR)) GROUP BY window_start, window_end;
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_end, k
FROM TABLE(SESSION(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR));
