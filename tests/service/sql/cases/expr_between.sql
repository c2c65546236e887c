-- plan: SELECT ((s.n >= 1) AND (CAST(s.n AS BIGINT) <= s.k)) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT n BETWEEN 1 AND k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
