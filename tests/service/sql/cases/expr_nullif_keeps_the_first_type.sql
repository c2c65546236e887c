-- plan: SELECT CAST(NULLIF(CAST(s.n AS BIGINT), s.k) AS INT) AS x
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT NULLIF(n, k)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
