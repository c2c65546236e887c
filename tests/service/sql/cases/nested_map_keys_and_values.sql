-- plan: SELECT CAST(MAP_KEYS(s.labels) AS ARRAY<STRING>) AS a, MAP_VALUES(s.labels)[1] AS b
-- with: d_named s_nested
CREATE TABLE o (a ARRAY<STRING>, b STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT MAP_KEYS(labels), MAP_VALUES(labels)[1] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
