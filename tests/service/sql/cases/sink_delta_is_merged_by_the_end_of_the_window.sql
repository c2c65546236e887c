-- plan: INTO o delta(o, merged by at) NOT NULL at
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(6), x BIGINT, PRIMARY KEY (at) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'o');
SET 'table.exec.emit.allow-lateness' = '1 min';
INSERT INTO o SELECT window_end, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
