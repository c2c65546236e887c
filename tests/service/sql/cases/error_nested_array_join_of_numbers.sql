-- error: Write CAST(… AS ARRAY<STRING>)
-- fixed: ARRAY[n, 1] => CAST(ARRAY[n, 1] AS ARRAY<STRING>)
-- with: d_named s_nested
CREATE TABLE o (a STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ARRAY_JOIN(ARRAY[n, 1], ',') FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
