-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND), processing time behind its backlog | JOIN at once behind the backlog: nothing waits, nothing is late
-- with: d_since s_event_variant out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
