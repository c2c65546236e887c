-- plan: SELECT ((1 + (2 * s.n)) - (3 % 2)) AS x
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT 1 + 2 * n - 3 % 2
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
