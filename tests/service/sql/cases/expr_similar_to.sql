-- plan: SELECT s.t AS x | WHERE SIMILAR(s.t, 'a.*')
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT t
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id WHERE t SIMILAR TO 'a.*';
