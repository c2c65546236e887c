-- plan: SELECT (CAST(CEIL(s.amount):DECIMAL(8, 0) AS DECIMAL(10, 0)) + FLOOR(d.price):DECIMAL(10, 0)):DECIMAL(11, 0) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DECIMAL(11, 0)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT CEIL(amount) + FLOOR(d.price)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
