-- plan: SELECT (s.ts + INTERVAL '14' MONTH) AS x
-- with: d_since s_event_time out_timestamp
INSERT INTO o SELECT ts + INTERVAL '1-2' YEAR TO MONTH FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
