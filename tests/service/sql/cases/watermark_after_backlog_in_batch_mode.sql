-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND)
-- with: d_since s_event_variant out_bigint_string … join_name_of_time
SET 'execution.runtime-mode' = 'batch';
