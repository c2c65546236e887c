-- plan: SELECT ROUND(s.amount):DECIMAL(6, 0) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DECIMAL(6, 0)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ROUND(amount)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
