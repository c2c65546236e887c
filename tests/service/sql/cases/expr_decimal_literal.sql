-- plan: SELECT 1.50:DECIMAL(3, 2) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DECIMAL(3, 2)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT 1.50
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
