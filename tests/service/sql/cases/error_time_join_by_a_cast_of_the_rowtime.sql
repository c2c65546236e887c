-- error: takes a column of the stream
-- fixed: CAST(s.ts AS TIMESTAMP(0)) => s.ts
-- with: d_since s_event_time out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF CAST(s.ts AS TIMESTAMP(0)) ON s.k = d.id;
