-- error: table "d" is joined without FOR SYSTEM_TIME AS OF
-- fixed: JOIN d ON => JOIN d FOR SYSTEM_TIME AS OF s.p ON
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d ON s.k = d.id;
