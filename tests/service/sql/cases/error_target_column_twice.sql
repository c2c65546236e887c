-- error: listed twice
-- fixed: (x, x) SELECT k, k => (x) SELECT k
-- with: d_priced s_all_types out_bigint
INSERT INTO o (x, x) SELECT k, k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
