-- plan: SELECT (CAST(s.amount AS DECIMAL(13, 3)) + CAST(s.n AS DECIMAL(13, 3))):DECIMAL(14, 3) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DECIMAL(14, 3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT amount + n
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
