-- plan: SELECT NULL:DECIMAL(4, 1) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DECIMAL(4, 1)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT NULL
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
