-- plan: SELECT (s.dt > CAST('2024-01-01' AS DATE)) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT dt > '2024-01-01'
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
