-- error: ROW_NUMBER() of a window with table.exec.emit.allow-lateness
-- fixed: INSERT INTO o => RESET 'table.exec.emit.allow-lateness'; INSERT INTO o
-- with: s_event_time out_at_bigint
SET 'table.exec.emit.allow-lateness' = '1 min';
INSERT INTO o SELECT window_start, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY x) AS rn FROM (SELECT window_start, window_end, k, SUM(n) AS x FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, k)) WHERE rn <= 3;
