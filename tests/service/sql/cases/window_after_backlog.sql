-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND), processing time behind its backlog | EMIT windows behind the backlog when the clock has reached their end
-- with: d_since s_event_variant out_bigint_string
CREATE TABLE c (at TIMESTAMP(3), n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO c SELECT window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
