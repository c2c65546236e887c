-- plan: INTO o delta(o) NOT NULL at, k
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT, PRIMARY KEY (at, k) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'o');
INSERT INTO o SELECT window_start, k, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, k;
