-- plan: SELECT CAST(s.payload AS STRING) AS x
-- with: d_named s_nested out_string
INSERT INTO o SELECT CAST(payload AS STRING) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
