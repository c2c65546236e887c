-- plan: SELECT REGEXP_REPLACE(s.t, '(a+)+', '') AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT REGEXP_REPLACE(t, '(a+)+', '')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
