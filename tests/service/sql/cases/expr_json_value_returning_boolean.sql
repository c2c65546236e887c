-- plan: SELECT JSON_VALUE(s.t, '$.a', 'NULL', 'NULL', NULL:BOOLEAN, NULL:BOOLEAN) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT JSON_VALUE(t, '$.a' RETURNING BOOLEAN)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
