-- plan: GROUP BY window_start, window_end, s.payload.id AS k0 | SELECT window_start AS a, k0 AS b, CAST(a0 AS BIGINT) AS c
-- with: s_payload_time
CREATE TABLE o (a TIMESTAMP(3), b BIGINT, c BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, payload.id, MAX(CARDINALITY(tags))
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, payload.id;
