-- error: SESSION has too many arguments
-- fixed: , INTERVAL '1' MINUTE)) => ))
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(SESSION(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
