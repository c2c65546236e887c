-- plan: SELECT CAST(s.inst AS TIMESTAMP(0)) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x TIMESTAMP(0)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT CAST(inst AS TIMESTAMP(0))
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
