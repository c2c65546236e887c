-- error: windows of CUMULATE, more than 1,440
-- fixed: INTERVAL '1' SECOND => INTERVAL '1' HOUR
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n) AS rn FROM TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '1' DAY))) WHERE rn <= 3;
