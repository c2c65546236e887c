-- error: the last key of MAP has no value
-- fixed: , 'b'] => ]
-- with: d_named s_nested
CREATE TABLE o (a MAP<STRING, INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT MAP['a', n, 'b'] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
