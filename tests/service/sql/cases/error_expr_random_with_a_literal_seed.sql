-- error: function RAND without a seed from the record
-- fixed: RAND(7) => RAND(n)
-- with: d_priced s_all_types
CREATE TABLE o (x DOUBLE) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT RAND(7)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
