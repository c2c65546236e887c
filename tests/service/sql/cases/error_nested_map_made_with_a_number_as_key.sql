-- error: expected MAP<STRING, INT>
-- fixed: MAP[n, n] => CAST(MAP[n, n] AS MAP<STRING, INT>)
-- with: d_named s_nested
CREATE TABLE o (x MAP<STRING, INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT MAP[n, n]
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
