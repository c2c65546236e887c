-- error: lookup.strategy shuffle does not keep
-- fixed: SET 'lookup.strategy' = 'shuffle' => SET 'lookup.strategy' = 'index'
-- with: d_versions s_event_time out_bigint_string
SET 'lookup.strategy' = 'shuffle';
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
