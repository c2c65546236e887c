-- plan: SELECT (((s.k >= 2:BIGINT) AND (s.k <= 1:BIGINT)) OR ((s.k >= 1:BIGINT) AND (s.k <= 2:BIGINT))) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT k BETWEEN SYMMETRIC 2 AND 1
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
