-- plan: SELECT window_start AS at, CASE WHEN IN(k2, 0) THEN 0:BIGINT WHEN IN(k2, 1) THEN 1:BIGINT ELSE 3:BIGINT END AS x
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, GROUPING_ID(k, t)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, ROLLUP (k, t)
HAVING GROUPING(k) = 0 OR GROUP_ID() = 0;
