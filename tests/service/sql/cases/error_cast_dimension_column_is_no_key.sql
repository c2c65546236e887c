-- error: a key is a bare column of the dimension
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON CAST(d.id AS STRING) = s.t;
