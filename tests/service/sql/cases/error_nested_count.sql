-- error: COUNT takes no ARRAY
-- with: s_payload_time
CREATE TABLE o (a TIMESTAMP(3), b BIGINT, c BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, payload.id, COUNT(tags)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, payload.id;
