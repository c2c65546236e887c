-- error: FOR SYSTEM_TIME AS OF follows the alias "x" Write the alias last: [LEFT] JOIN
-- fixed: JOIN d AS x FOR SYSTEM_TIME AS OF s.p => JOIN d FOR SYSTEM_TIME AS OF s.p AS x
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d AS x FOR SYSTEM_TIME AS OF s.p ON s.k = x.id;
