-- plan: SELECT (s.k = 1:BIGINT) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT k = 1
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
