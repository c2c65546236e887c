-- plan: SELECT ((s.n <> 1) AND (s.n <> 2)) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT n <> 1 AND n != 2
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
