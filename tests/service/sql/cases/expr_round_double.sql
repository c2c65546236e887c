-- plan: SELECT ROUND(s.r, s.n) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DOUBLE) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ROUND(r, n)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
