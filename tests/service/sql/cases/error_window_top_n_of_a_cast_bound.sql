-- error: without window_start and window_end in PARTITION BY
-- fixed: CAST(window_start AS DATE), CAST(window_end AS DATE) => window_start, window_end
-- with: s_event_time out_bigint
INSERT INTO o SELECT k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY CAST(window_start AS DATE), CAST(window_end AS DATE) ORDER BY n) AS rn FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) WHERE rn <= 3;
