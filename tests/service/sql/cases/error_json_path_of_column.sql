-- error: the path of JSON_VALUE must be a literal
-- fixed: (t, t) => (t, '$.a')
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT JSON_VALUE(t, t)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
