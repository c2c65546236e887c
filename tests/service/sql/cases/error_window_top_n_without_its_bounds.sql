-- error: ROW_NUMBER() of a window without window_start and window_end in PARTITION BY
-- fixed: PARTITION BY window_end => PARTITION BY window_start, window_end
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY n) AS rn FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) WHERE rn <= 3;
