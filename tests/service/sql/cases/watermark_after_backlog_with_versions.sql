-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND), processing time behind its backlog | WAIT for d behind the backlog, too: its WATERMARK goes on
-- with: d_versions s_event_variant out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
