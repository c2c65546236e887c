-- plan: SELECT ((NOT(s.ok) AND (s.n = 1)) OR s.ok) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT NOT ok AND n = 1 OR ok
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
