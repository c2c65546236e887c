-- plan: GROUP BY window_start, window_end, UPPER(s.t) AS k0, (s.n % 2) AS k1 | SELECT window_start AS at, CONCAT(k0, '!') AS a, k1 AS b
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(3), a STRING, b INT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, UPPER(t) || '!', n % 2
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, UPPER(t), n % 2;
