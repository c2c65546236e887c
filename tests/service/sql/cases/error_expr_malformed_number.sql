-- error: malformed number
-- fixed: 12abc => 42
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT 12abc
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
