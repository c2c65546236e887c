-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND)
-- with: d_since s_event_variant out_bigint_string
SET 'execution.runtime-mode' = 'batch';
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
