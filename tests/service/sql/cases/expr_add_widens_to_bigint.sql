-- plan: SELECT (CAST(s.n AS BIGINT) + s.k) AS x
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT n + k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
