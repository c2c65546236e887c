-- plan: SELECT (NOT(((s.n >= 1) AND (s.n <= 10))) AND s.ok) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT n NOT BETWEEN 1 AND 10 AND ok
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
