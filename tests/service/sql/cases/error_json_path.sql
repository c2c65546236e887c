-- error: is not a supported JSON path
-- fixed: [?(@.b)] => [0].b
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT JSON_VALUE(t, '$.a[?(@.b)]')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
