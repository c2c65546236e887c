-- error: is STRING, expected BIGINT
-- fixed: SELECT t => SELECT CAST(t AS BIGINT)
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT t
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
