-- error: "k" is BIGINT, not the rowtime of the stream
-- fixed: DESCRIPTOR(k) => DESCRIPTOR(ts)
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(k), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
