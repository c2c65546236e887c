-- plan: SELECT IS TRUE(s.ok) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT ok IS TRUE
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
