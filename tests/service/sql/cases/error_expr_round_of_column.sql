-- error: TRUNCATE of a DECIMAL takes a literal
-- fixed: amount, n => amount, 2
-- with: d_priced s_all_types
CREATE TABLE o (x DECIMAL(8, 3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT TRUNCATE(amount, n)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
