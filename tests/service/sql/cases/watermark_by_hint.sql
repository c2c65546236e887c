-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND), on-event
-- with: d_since s_event_time out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s /*+ OPTIONS('scan.watermark.emit.strategy' = 'on-event') */ JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
