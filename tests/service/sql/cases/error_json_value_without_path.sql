-- error: Write JSON_VALUE(text
-- fixed: (t) => (t, '$.a' RETURNING STRING NULL ON EMPTY DEFAULT 'x' ON ERROR)
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT JSON_VALUE(t)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
