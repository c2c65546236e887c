-- error: ARRAY has operands of INT and STRING
-- fixed: ARRAY[n, d.name] => ARRAY[n, CAST(d.name AS INT)]
-- with: d_named s_nested
CREATE TABLE o (a ARRAY<INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ARRAY[n, d.name] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
