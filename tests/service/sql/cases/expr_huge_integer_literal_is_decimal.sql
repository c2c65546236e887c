-- plan: SELECT 99999999999999999999:DECIMAL(20, 0) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DECIMAL(20, 0)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT 99999999999999999999
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
