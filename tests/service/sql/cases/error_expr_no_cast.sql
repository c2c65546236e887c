-- error: cannot cast BOOLEAN to DATE
-- fixed: CAST(ok AS DATE) => CAST(CAST(ok AS STRING) AS DATE)
-- with: d_priced s_all_types
CREATE TABLE o (x DATE) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT CAST(ok AS DATE)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
