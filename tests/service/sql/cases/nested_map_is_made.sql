-- plan: SELECT CAST(MAP['a', CAST(s.n AS BIGINT), d.name, s.k, 'b', 3:BIGINT] AS MAP<STRING, BIGINT>) AS a
-- with: d_named s_nested
CREATE TABLE o (a MAP<STRING, BIGINT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT MAP['a', n, d.name, k, 'b', 3] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
