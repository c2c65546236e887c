-- plan: EMIT windows when the watermark has reached their end, and again for each record that is late by 60000 ms at the most | SET table.exec.emit.allow-lateness = 60000 ms
-- with: s_event_time out_at_bigint
SET 'table.exec.emit.allow-lateness' = '1 min';
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
