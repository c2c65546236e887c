-- error: a key is a bare column of the dimension
-- fixed: CAST(d.id AS VARCHAR(3)) => CAST(d.id AS STRING)
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON CAST(d.id AS VARCHAR(3)) = s.t;
