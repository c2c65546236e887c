-- error: ROUND of a DECIMAL takes a literal
-- fixed: ROUND(amount, n) => ROUND(amount, 2)
-- with: d_priced s_all_types
CREATE TABLE o (x DOUBLE) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ROUND(amount, n)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
