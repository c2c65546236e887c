-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND) | WAIT until the watermark of s has reached the record's time | NEWEST rows of d, which has no WATERMARK | LATE records INTO the job's own table
-- with: d_since s_event_time out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
