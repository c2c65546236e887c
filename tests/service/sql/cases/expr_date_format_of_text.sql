-- plan: SELECT FORMAT_TEXT(s.t, 'yyyy') AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT DATE_FORMAT(t, 'yyyy')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
