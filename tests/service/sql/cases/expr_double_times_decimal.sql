-- plan: SELECT (s.r * CAST(s.amount AS DOUBLE)) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DOUBLE) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT r * amount
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
