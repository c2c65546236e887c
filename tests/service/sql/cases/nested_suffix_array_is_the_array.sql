-- plan: SELECT NULL:ARRAY<INT> AS a
-- with: d_named s_nested
CREATE TABLE o (a INT ARRAY) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT CAST(NULL AS ARRAY<INT>) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
