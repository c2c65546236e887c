-- error: expected "]"
-- fixed: ARRAY[n, 1 FROM => ARRAY[n, 1] FROM
-- with: d_named s_nested
CREATE TABLE o (a ARRAY<INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ARRAY[n, 1 FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
