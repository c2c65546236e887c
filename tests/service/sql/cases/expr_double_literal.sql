-- plan: SELECT 1.5E3:DOUBLE AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DOUBLE) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT 1.5E3
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
