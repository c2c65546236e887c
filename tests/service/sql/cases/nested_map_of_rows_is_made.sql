-- plan: SELECT CAST(MAP['a', ROW(s.n, d.name)] AS MAP<STRING, ROW<`x` INT, `y` STRING>>) AS a
-- with: d_named s_nested
CREATE TABLE o (a MAP<STRING, ROW<x INT, y STRING>>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT MAP['a', ROW(n, d.name)] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
