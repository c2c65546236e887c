-- error: NULLIF takes no MAP
-- fixed: NULLIF(labels, labels) => MAP['a', NULLIF(labels['a'], 'x')]
-- with: d_named s_nested
CREATE TABLE o (x MAP<STRING, STRING>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT NULLIF(labels, labels) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
