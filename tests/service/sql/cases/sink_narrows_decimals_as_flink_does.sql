-- plan: SELECT CAST((s.amount * d.price):DECIMAL(19, 5) AS DECIMAL(10, 2)) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DECIMAL(10, 2)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT amount * d.price
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
