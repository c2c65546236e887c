-- plan: SELECT ARRAY_CONTAINS(MAP_KEYS(s.labels), 'x') AS a, ARRAY_CONTAINS(ARRAY[s.k, 2:BIGINT], CAST(s.n AS BIGINT)) AS b
-- with: d_named s_nested
CREATE TABLE o (a BOOLEAN, b BOOLEAN) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ARRAY_CONTAINS(MAP_KEYS(labels), 'x'), ARRAY_CONTAINS(ARRAY[k, 2], n) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
