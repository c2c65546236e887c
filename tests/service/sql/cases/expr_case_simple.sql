-- plan: SELECT CASE WHEN (s.t = 'a') THEN CAST(s.n AS BIGINT) WHEN (s.t = 'b') THEN s.k END AS x
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT CASE t WHEN 'a' THEN n WHEN 'b' THEN k END
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
