-- plan: SELECT NOT(IN(s.t, 'a', 'b')) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT t NOT IN ('a', 'b')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
