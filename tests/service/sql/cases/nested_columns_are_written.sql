-- plan: SELECT CAST(s.payload AS ROW<`x` BIGINT, `y` ROW<`i` BIGINT, `m` STRING>, `z` BIGINT>) AS a, CAST(s.items AS ARRAY<ROW<`sku` STRING, `n` BIGINT>>) AS b, s.labels AS c
-- with: d_named s_nested
CREATE TABLE o (a ROW<x BIGINT, y ROW<i BIGINT, m STRING>, z BIGINT>, b ARRAY<ROW<sku STRING, n BIGINT>>, c MAP<STRING, STRING>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT payload, items, labels FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
