-- error: a MAP of this form is not supported
-- fixed: MAP('a', n) => MAP['a', n]
-- with: d_named s_nested
CREATE TABLE o (a MAP<STRING, INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT MAP('a', n) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
