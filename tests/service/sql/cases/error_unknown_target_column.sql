-- error: column "y" is not in "o"
-- fixed: (y) => (x)
-- with: d_priced s_all_types out_bigint
INSERT INTO o (y) SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
