-- plan: AGGREGATE SUM(s.n):INT AS a0, COUNT(*):BIGINT AS a1 | HAVING (a1 > 1:BIGINT) | SELECT window_start AS at, (CAST(a0 AS BIGINT) / a1) AS x
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, SUM(n) / COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end HAVING COUNT(*) > 1;
