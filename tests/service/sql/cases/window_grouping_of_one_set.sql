-- plan: SELECT window_start AS at, 0:BIGINT AS x
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, GROUPING(k)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, k;
