-- plan: SELECT CAST((s.k % CAST(s.n AS BIGINT)) AS INT) AS x
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT k % n
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
