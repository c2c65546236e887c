-- error: each row would be up to 1,440 rows, one for each of its windows
-- fixed: SELECT window_end, k => SELECT window_end, COUNT(*)
-- fixed: '1' DAY)); => '1' DAY)) GROUP BY window_start, window_end;
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_end, k
FROM TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' DAY));
