-- error: PARTITION is not supported
-- fixed:  PARTITION (a = 1) =>
-- with: d_priced s_all_types out_bigint
INSERT INTO o PARTITION (a = 1) SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
