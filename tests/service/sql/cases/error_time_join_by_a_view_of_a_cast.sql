-- error: nor its rowtime
-- fixed: ts + INTERVAL '1' DAY AS ts => ts
-- with: d_since s_event_time out_bigint_string
CREATE VIEW v AS SELECT k, ts + INTERVAL '1' DAY AS ts FROM s;
INSERT INTO o SELECT v.k, d.name FROM v JOIN d FOR SYSTEM_TIME AS OF v.ts ON v.k = d.id;
