-- error: ARRAY_UNION takes an ARRAY, not STRING
-- fixed: 'a'], t => 'a'], ARRAY[t, t]
-- with: d_priced s_all_types
CREATE TABLE o (x ARRAY<STRING>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ARRAY_UNION(ARRAY['a'], t)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
