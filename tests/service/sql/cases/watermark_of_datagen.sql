-- plan: FROM s AS s datagen(10000/s) [k BIGINT, ms BIGINT, ts = TO_TIMESTAMP_LTZ(s.ms)] | WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND), on-event
-- with: d_since … out_bigint_string join_name_of_time
CREATE TABLE s (k BIGINT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH ('connector' = 'datagen', 'scan.watermark.emit.strategy' = 'on-event');
