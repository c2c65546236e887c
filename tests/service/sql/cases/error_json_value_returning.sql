-- error: RETURNING DATE is not supported
-- fixed: JSON_VALUE(t, '$.a' RETURNING DATE) => CAST(JSON_VALUE(t, '$.a') AS DATE)
-- with: d_priced s_all_types
CREATE TABLE o (x DATE) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT JSON_VALUE(t, '$.a' RETURNING DATE)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
