-- plan: SELECT 23:59:59.5:TIME(1) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x TIME(1)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT TIME '23:59:59.5'
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
