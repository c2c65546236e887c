-- error: setting "table.exec.source.idle-timeout" is "-1 s"
-- with: d_since s_event_time out_bigint_string
SET 'table.exec.source.idle-timeout' = '-1 s';
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
