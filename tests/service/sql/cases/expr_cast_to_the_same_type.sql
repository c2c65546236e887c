-- plan: SELECT s.n AS x
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT CAST(n AS INTEGER)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
