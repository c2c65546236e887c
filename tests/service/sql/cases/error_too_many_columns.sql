-- error: the query has 2 columns, "o" takes 1: x
-- fixed: SELECT k, n => SELECT k
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k, n FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
