-- error: where nothing is late
-- fixed: DESCRIPTOR(p) => DESCRIPTOR(ts)
-- with: s_event_time out_at_bigint
SET 'table.exec.emit.allow-lateness' = '1 min';
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(p), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
