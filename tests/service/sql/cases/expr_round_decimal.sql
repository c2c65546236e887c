-- plan: SELECT ROUND(s.amount, 1):DECIMAL(7, 1) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DECIMAL(7, 1)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ROUND(amount, 1)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
