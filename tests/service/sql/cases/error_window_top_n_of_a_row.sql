-- error: PARTITION BY takes no ROW
-- fixed: , ROW(k, n) ORDER => , k, n ORDER
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, ROW(k, n) ORDER BY n) AS rn FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) WHERE rn <= 3;
