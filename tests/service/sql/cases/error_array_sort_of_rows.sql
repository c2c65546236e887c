-- error: ARRAY_SORT takes no ARRAY<ROW<
-- fixed: ARRAY[ROW(n)] => ARRAY[n]
-- with: d_priced s_all_types
CREATE TABLE o (x ARRAY<INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ARRAY_SORT(ARRAY[ROW(n)])
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
