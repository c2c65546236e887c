-- plan: WHERE (s.payload IS NOT NULL) | SELECT (CARDINALITY(s.items) + CARDINALITY(s.labels)) AS x, (s.payload IS NULL) AS y
-- with: d_named s_nested
CREATE TABLE o (x INT, y BOOLEAN) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT CARDINALITY(items) + CARDINALITY(labels), payload IS NULL FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id WHERE payload IS NOT NULL;
