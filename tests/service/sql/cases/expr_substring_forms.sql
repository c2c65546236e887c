-- plan: SELECT CONCAT(SUBSTRING(s.t, 2), SUBSTRING(s.t, 2, 3), SUBSTRING(s.t, s.n, 1)) AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT SUBSTRING(t, 2) || SUBSTRING(t FROM 2 FOR 3) || SUBSTR(t, n, 1)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
