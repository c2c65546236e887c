-- plan: WINDOW TUMBLE of the clock, size 60000 ms | SELECT CAST(window_start AS TIMESTAMP(3)) AS at, a0 AS x
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(p), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
