-- plan: SELECT (s.f + CAST(s.n AS FLOAT)) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x FLOAT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT f + n
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
