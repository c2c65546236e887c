-- plan: SELECT (SQRT(CAST(s.n AS DOUBLE)) + POWER(s.r, CAST(2 AS DOUBLE))) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DOUBLE) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT SQRT(n) + POWER(r, 2)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
