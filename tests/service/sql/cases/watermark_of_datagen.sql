-- plan: FROM s AS s datagen(10000/s) [k BIGINT, ms BIGINT, ts = TO_TIMESTAMP_LTZ(s.ms)] | WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND), on-event
-- with: d_since
CREATE TABLE s (k BIGINT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH ('connector' = 'datagen', 'scan.watermark.emit.strategy' = 'on-event');
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
