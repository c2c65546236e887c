-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND) | WAIT until the watermark of s and d has reached the record's time
-- with: d_versions s_event_time out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s LEFT JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
