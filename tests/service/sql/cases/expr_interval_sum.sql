-- plan: SELECT (s.ts - INTERVAL '86399' SECOND) AS x
-- with: d_since s_event_time out_timestamp
INSERT INTO o SELECT ts - (INTERVAL '1' DAY - INTERVAL '1' SECOND) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
