-- error: is DOUBLE, expected FLOAT
-- fixed: SELECT r => SELECT CAST(r AS FLOAT)
-- with: d_priced s_all_types
CREATE TABLE o (x FLOAT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT r
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
