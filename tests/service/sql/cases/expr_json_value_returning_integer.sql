-- plan: SELECT JSON_VALUE(s.t, 'lax $.a', 'DEFAULT', 'ERROR', 0, NULL:INT) AS x
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT JSON_VALUE(t, 'lax $.a' RETURNING INTEGER DEFAULT 0 ON EMPTY ERROR ON ERROR)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
