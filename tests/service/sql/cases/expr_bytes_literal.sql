-- plan: SELECT 0aff:BYTES AS x
-- with: d_priced s_all_types
CREATE TABLE o (x BYTES) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT x'0AfF'
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
