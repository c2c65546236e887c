-- plan: SELECT IN(CAST(s.n AS BIGINT), 1:BIGINT, 2:BIGINT, 3000000000:BIGINT) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT n IN (1, 2, 3000000000)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
