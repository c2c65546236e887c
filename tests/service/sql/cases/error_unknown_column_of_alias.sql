-- error: unknown column "k" in "d"
-- fixed: SELECT d.k => SELECT d.id
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT d.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
