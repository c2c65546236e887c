-- plan: SELECT TO_TIMESTAMP_LTZ(s.k, 0) AS x
-- with: d_since s_event_time
CREATE TABLE o (x TIMESTAMP_LTZ(3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT TO_TIMESTAMP_LTZ(k, 0) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
