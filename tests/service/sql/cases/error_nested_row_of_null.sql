-- error: a part of ROW is NULL
-- fixed: ROW(NULL) => ROW(CAST(NULL AS INT))
-- with: d_named s_nested
CREATE TABLE o (a ROW<x INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ROW(NULL) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
