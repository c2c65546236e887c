-- plan: SELECT (s.ok IS NULL) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT ok IS UNKNOWN
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
