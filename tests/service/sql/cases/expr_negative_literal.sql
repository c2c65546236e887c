-- plan: SELECT -5 AS x
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT -5
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
