-- error: expected ")"
-- fixed: (k + 1 => (k + 1)
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT (k + 1
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
