-- plan: SELECT (2024-01-01:DATE + INTERVAL '86400' SECOND) AS x
-- with: d_since s_event_time
CREATE TABLE o (x DATE) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT DATE '2024-01-01' + INTERVAL '1' DAY FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
