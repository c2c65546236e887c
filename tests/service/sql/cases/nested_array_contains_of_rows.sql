-- plan: SELECT ARRAY_CONTAINS(s.items, CAST(ROW('x', 1) AS ROW<`sku` STRING, `n` INT>)) AS a
-- with: d_named s_nested
CREATE TABLE o (a BOOLEAN) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ARRAY_CONTAINS(items, ROW('x', 1)) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
