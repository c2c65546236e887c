-- plan: SELECT CAST(s.n AS BIGINT) AS a, CAST(s.f AS DOUBLE) AS b, CAST(s.amount AS DECIMAL(12, 4)) AS c, CAST(s.amount AS DOUBLE) AS d, CAST(s.ts AS DATE) AS e, CAST(s.ts AS TIMESTAMP(6)) AS g, CAST(s.inst AS TIMESTAMP(3)) AS h, CAST(s.tiny AS SMALLINT) AS i
-- with: d_priced s_all_types
CREATE TABLE o (a BIGINT, b DOUBLE, c DECIMAL(12, 4), d DOUBLE, e DATE, g TIMESTAMP(6), h TIMESTAMP(3), i SMALLINT) WITH ('connector' = 'print');
INSERT INTO o SELECT n, f, amount, amount, ts, ts, inst, tiny FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
