-- plan: SELECT CASE WHEN (s.n > 0) THEN 'yes' ELSE NULL:STRING END AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT IF(n > 0, 'yes', NULL)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
