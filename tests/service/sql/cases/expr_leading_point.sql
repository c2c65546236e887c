-- plan: SELECT 0.5:DECIMAL(1, 1) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DECIMAL(1, 1)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT .5
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
