-- plan: SELECT (s.t IS NOT DISTINCT FROM d.name) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT t IS NOT DISTINCT FROM d.name
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
