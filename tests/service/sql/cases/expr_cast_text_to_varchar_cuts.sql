-- plan: SELECT LEFT(s.t, 3) AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT CAST(t AS VARCHAR(3))
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
