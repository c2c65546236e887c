-- error: MAP has operands of INT and STRING
-- fixed: d.name] => CAST(d.name AS INT)]
-- with: d_named s_nested
CREATE TABLE o (a MAP<STRING, INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT MAP['a', n, 'b', d.name] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
