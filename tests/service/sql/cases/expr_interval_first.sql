-- plan: SELECT (s.ts + INTERVAL '86400' SECOND) AS x
-- with: d_since s_event_time out_timestamp
INSERT INTO o SELECT INTERVAL '1' DAY + ts FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
