-- plan: SELECT (CAST(s.amount AS DOUBLE) >= s.r) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT amount >= r
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
