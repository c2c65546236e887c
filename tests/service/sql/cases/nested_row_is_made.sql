-- plan: SELECT CAST(ROW(s.n, COALESCE(d.name, '?')) AS ROW<`x` BIGINT, `y` STRING NOT NULL>) AS a
-- with: d_named s_nested
CREATE TABLE o (a ROW<x BIGINT, y STRING NOT NULL>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ROW(n, COALESCE(d.name, '?')) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
