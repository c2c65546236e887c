-- plan: SELECT s.labels['a'] AS x
-- with: d_named s_nested out_string
INSERT INTO o SELECT labels['a'] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
