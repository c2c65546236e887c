-- error: Write ARRAY[a, b].
-- fixed: ARRAY(n) => ARRAY[n]
-- with: d_named s_nested
CREATE TABLE o (a ARRAY<INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ARRAY(n) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
