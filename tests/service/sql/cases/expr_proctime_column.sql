-- plan: SELECT s.p AS x
-- with: d_priced s_all_types
CREATE TABLE o (x TIMESTAMP_LTZ(3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.p
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
