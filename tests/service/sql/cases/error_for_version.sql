-- error: expected FOR SYSTEM_TIME AS OF
-- fixed: FOR VERSION AS OF 3 => FOR SYSTEM_TIME AS OF s.p
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR VERSION AS OF 3 ON s.k = d.id;
