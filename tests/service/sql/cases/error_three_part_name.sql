-- error: unknown table or alias "a"
-- fixed: a.s.k => s.k
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT a.s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
