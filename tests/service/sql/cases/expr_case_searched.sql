-- plan: SELECT CASE WHEN (s.n > 0) THEN 1 WHEN s.ok THEN 2 ELSE 3 END AS x
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT CASE WHEN n > 0 THEN 1 WHEN ok THEN 2 ELSE 3 END
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
