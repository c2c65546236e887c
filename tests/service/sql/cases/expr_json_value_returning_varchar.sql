-- plan: SELECT JSON_VALUE(s.t, '$.a', 'NULL', 'NULL', NULL:STRING, NULL:STRING) AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT JSON_VALUE(t, '$.a' RETURNING VARCHAR)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
