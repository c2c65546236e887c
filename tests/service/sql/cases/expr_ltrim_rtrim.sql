-- plan: SELECT LTRIM(RTRIM(s.t)) AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT LTRIM(RTRIM(t))
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
