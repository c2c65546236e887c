-- plan: SELECT CONCAT(s.t, '-', d.name) AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT t || '-' || d.name
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
