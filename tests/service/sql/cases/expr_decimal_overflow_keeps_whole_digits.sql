-- plan: SELECT (CAST(s.t AS DECIMAL(30, 20)) * CAST(s.t AS DECIMAL(30, 20))):DECIMAL(38, 17) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DECIMAL(38, 17)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT CAST(t AS DECIMAL(30, 20)) * CAST(t AS DECIMAL(30, 20))
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
