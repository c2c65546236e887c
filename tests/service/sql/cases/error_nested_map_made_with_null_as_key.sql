-- error: a key of MAP is NULL
-- fixed: MAP[NULL, n] => MAP['key', n]
-- with: d_named s_nested
CREATE TABLE o (x MAP<STRING, INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT MAP[NULL, n]
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
