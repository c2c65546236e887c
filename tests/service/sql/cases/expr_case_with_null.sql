-- plan: SELECT CASE WHEN s.ok THEN NULL:DECIMAL(8, 3) ELSE s.amount END AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DECIMAL(8, 3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT CASE WHEN ok THEN NULL ELSE amount END
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
