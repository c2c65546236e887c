-- plan: SELECT REVERSE(REPLACE(s.t, 'a', 'b')) AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT REVERSE(REPLACE(t, 'a', 'b'))
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
