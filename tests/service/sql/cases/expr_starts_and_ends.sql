-- plan: SELECT (STARTSWITH(s.t, 'a') AND ENDSWITH(s.t, 'z')) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT STARTSWITH(t, 'a') AND ENDSWITH(t, 'z')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
