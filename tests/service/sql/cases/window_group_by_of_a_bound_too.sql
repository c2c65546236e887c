-- plan: GROUP BY window_start, window_end | SELECT CAST(window_start AS DATE) AS day_, a0 AS x
-- with: s_event_time
CREATE TABLE o (day_ DATE, x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT CAST(window_start AS DATE), COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, CAST(window_start AS DATE);
