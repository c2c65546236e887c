-- plan: SELECT (CAST(s.amount AS DECIMAL(11, 3)) % CAST(d.price AS DECIMAL(11, 3))):DECIMAL(8, 3) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DECIMAL(8, 3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT amount % d.price
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
