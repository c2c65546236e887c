-- error: is BIGINT, expected STRING
-- fixed: SELECT k => SELECT CAST(k AS STRING)
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
