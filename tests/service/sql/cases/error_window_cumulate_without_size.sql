-- error: CUMULATE has not all of its arguments
-- fixed: INTERVAL '1' HOUR) => INTERVAL '1' HOUR, INTERVAL '1' DAY)
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY window_start, window_end;
