-- error: There is no cast from BOOLEAN to DATE
-- fixed: (x DATE) => (x BOOLEAN)
-- with: d_priced s_all_types
CREATE TABLE o (x DATE) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ok
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
