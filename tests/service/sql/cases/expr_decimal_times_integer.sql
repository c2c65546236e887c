-- plan: SELECT (d.price * 2:DECIMAL(10, 0)):DECIMAL(21, 2) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DECIMAL(21, 2)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT d.price * 2
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
