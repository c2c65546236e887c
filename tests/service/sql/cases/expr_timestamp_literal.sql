-- plan: SELECT 2024-01-31 12:00:00.123:TIMESTAMP(3) AS x
-- with: d_priced s_all_types out_timestamp
INSERT INTO o SELECT TIMESTAMP '2024-01-31 12:00:00.123'
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
