-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND), idle after 60000 ms | WATERMARK d.since AS since, idle after 60000 ms
-- with: d_versions s_event_time out_bigint_string … join_name_of_time
SET 'table.exec.source.idle-timeout' = '1 min';
