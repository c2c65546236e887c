-- plan: SELECT NULL:ROW<`x` INT, `y` STRING> AS a
-- with: d_named s_nested
CREATE TABLE o (a ROW<x INT, y STRING>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT CAST(NULL AS ROW(x INT, y VARCHAR(3))) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
