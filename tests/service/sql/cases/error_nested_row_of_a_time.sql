-- error: expected ROW<`x` INT>
-- fixed: ROW(CAST(d.name AS TIME)) => ROW(CAST(d.name AS INT))
-- with: d_named s_nested
CREATE TABLE o (x ROW<x INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ROW(CAST(d.name AS TIME))
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
