-- plan: SELECT ARRAY[CAST(s.n AS BIGINT), s.k, 3:BIGINT] AS a
-- with: d_named s_nested
CREATE TABLE o (a ARRAY<BIGINT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ARRAY[n, k, 3] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
