-- error: Write JSON_EXISTS(text
-- fixed: '$.a' TRUE => 'lax $.a' FALSE ON ERROR
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT JSON_EXISTS(t, '$.a' TRUE)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
