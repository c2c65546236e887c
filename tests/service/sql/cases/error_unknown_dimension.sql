-- error: unknown table "dd"
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN dd FOR SYSTEM_TIME AS OF s.p ON k = id;
