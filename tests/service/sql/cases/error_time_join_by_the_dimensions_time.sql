-- error: "since" is TIMESTAMP(3), not the stream's
-- fixed: a.since => s.ts
-- with: d_versions s_event_time out_bigint_string
INSERT INTO o SELECT s.k, b.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts AS a ON s.k = a.id
JOIN d FOR SYSTEM_TIME AS OF a.since AS b ON s.n = b.id;
