-- plan: SELECT (CAST(CAST(s.ts AS TIMESTAMP(0)) AS TIMESTAMP(3)) - INTERVAL '0.5' SECOND) AS x
-- with: d_since s_event_time out_timestamp
INSERT INTO o SELECT CAST(ts AS TIMESTAMP(0)) - INTERVAL '0.5' SECOND FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
