-- error: it lacks window_start
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(0), k BIGINT, x BIGINT, PRIMARY KEY (at, k) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'o');
SET 'table.exec.emit.allow-lateness' = '1 min';
INSERT INTO o SELECT window_start, k, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, k;
