-- error: by event time or by processing time, not by both
-- fixed: AS OF s.p AS b => AS OF s.ts AS b
-- with: d_since s_event_time out_bigint_string
INSERT INTO o SELECT s.k, b.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts AS a ON s.k = a.id
JOIN d FOR SYSTEM_TIME AS OF s.p AS b ON s.n = b.id;
