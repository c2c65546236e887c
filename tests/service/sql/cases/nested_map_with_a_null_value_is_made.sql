-- plan: SELECT MAP['a', NULL:INT, 'b', s.n] AS a
-- with: d_named s_nested
CREATE TABLE o (a MAP<STRING, INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT MAP['a', NULL, 'b', n] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
