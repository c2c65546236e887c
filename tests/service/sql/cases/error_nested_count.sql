-- error: COUNT takes no ARRAY
-- fixed: COUNT(tags) => COUNT(tags[1])
-- with: s_payload_time
CREATE TABLE o (a TIMESTAMP(3), b BIGINT, c BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, payload.id, COUNT(tags)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, payload.id;
