-- plan: SELECT CONCAT(LEFT(s.t, 2), RIGHT(s.t, 2)) AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT LEFT(t, 2) || RIGHT(t, 2)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
