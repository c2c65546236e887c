-- plan: ROWS true AS r0 | SELECT window_end AS at, 1:BIGINT AS x
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_end, 1 FROM TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1' HOUR));
