-- plan: SELECT (s.ts - INTERVAL '600' SECOND) AS x
-- with: d_since s_event_time out_timestamp
INSERT INTO o SELECT ts - INTERVAL '10' MINUTES FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
