-- plan: SELECT COALESCE(d.level, s.n, 0) AS x
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT COALESCE(d.level, n, 0)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
