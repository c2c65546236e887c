-- error: MAP_UNION takes maps, not STRING
-- fixed: n], t => n], MAP['key', n]
-- with: d_priced s_all_types
CREATE TABLE o (x MAP<STRING, INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT MAP_UNION(MAP['a', n], t)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
