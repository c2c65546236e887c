-- error: is mysql-cdc, which cannot be the stream
-- with: d_versions s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE d, DESCRIPTOR(since), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
