-- plan: SELECT CAST(ARRAY[ROW(s.n, d.name)] AS ARRAY<ROW<`x` INT, `y` STRING>>) AS a
-- with: d_named s_nested
CREATE TABLE o (a ARRAY<ROW<x INT, y STRING>>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ARRAY[ROW(n, d.name)] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
