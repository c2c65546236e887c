-- plan: SELECT JSON_VALUE(s.t, '$.a', 'NULL', 'DEFAULT', NULL:DOUBLE, CAST(1 AS DOUBLE)) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DOUBLE) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT JSON_VALUE(t, '$.a' RETURNING DOUBLE NULL ON EMPTY DEFAULT 1 ON ERROR)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
