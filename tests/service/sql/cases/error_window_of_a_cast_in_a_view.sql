-- error: a VIEW keeps the time where it selects the bare column
-- fixed: CAST(ts AS TIMESTAMP(3)) + INTERVAL '1' HOUR AS ts => ts
-- with: s_event_time out_at_bigint
CREATE VIEW v AS SELECT k, CAST(ts AS TIMESTAMP(3)) + INTERVAL '1' HOUR AS ts FROM s;
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE v, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
