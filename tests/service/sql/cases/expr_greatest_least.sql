-- plan: SELECT GREATEST(CAST(s.n AS BIGINT), s.k, CAST(LEAST(CAST(s.tiny AS INT), 1) AS BIGINT)) AS x
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT GREATEST(n, k, LEAST(tiny, 1))
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
