-- plan: SELECT (s.amount / d.price):DECIMAL(21, 14) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DECIMAL(21, 14)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT amount / d.price
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
