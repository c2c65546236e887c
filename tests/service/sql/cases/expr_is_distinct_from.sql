-- plan: SELECT (CAST(s.n AS BIGINT) IS DISTINCT FROM s.k) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT n IS DISTINCT FROM k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
