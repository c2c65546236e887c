-- plan: WATERMARK e.ts AS (e.ts - INTERVAL '5' SECOND)
-- with: d_since s_event_time out_bigint_string
CREATE TABLE e WITH ('topic' = 'e') LIKE s;
INSERT INTO o SELECT e.k, d.name FROM e JOIN d FOR SYSTEM_TIME AS OF e.ts ON e.k = d.id;
