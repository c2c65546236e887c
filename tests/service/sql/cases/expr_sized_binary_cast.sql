-- plan: SELECT SIZED(CAST(s.t AS BYTES), 3, false) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x BYTES) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT CAST(t AS VARBINARY(3))
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
