-- plan: AGGREGATE COUNT(*):BIGINT AS a0 | SELECT window_start AS at, a0 AS x
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(1)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
