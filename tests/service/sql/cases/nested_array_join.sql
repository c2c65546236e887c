-- plan: SELECT ARRAY_JOIN(MAP_KEYS(s.labels), ', ') AS a, ARRAY_JOIN(CAST(ARRAY[s.n, 1] AS ARRAY<STRING>), '-', '?') AS b
-- with: d_named s_nested
CREATE TABLE o (a STRING, b STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ARRAY_JOIN(MAP_KEYS(labels), ', '), ARRAY_JOIN(CAST(ARRAY[n, 1] AS ARRAY<STRING>), '-', '?') FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
