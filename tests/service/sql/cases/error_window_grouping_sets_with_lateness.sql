-- error: no column of a result tells its grouping set
-- fixed: INSERT INTO o => RESET 'table.exec.emit.allow-lateness'; INSERT INTO o
-- with: s_event_time out_at_bigint
SET 'table.exec.emit.allow-lateness' = '1 min';
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, ROLLUP (k);
