-- error: unknown table "ss"
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM ss JOIN d FOR SYSTEM_TIME AS OF ss.p ON k = id;
