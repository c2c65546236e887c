-- error: the value that ARRAY_CONTAINS looks for in ARRAY<STRING NOT NULL> is INT, expected STRING
-- fixed: (labels), n) => (labels), CAST(n AS STRING))
-- with: d_named s_nested
CREATE TABLE o (a BOOLEAN) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ARRAY_CONTAINS(MAP_KEYS(labels), n) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
