-- plan: SELECT (s.t LIKE 'a%') AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT t LIKE 'a%'
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
