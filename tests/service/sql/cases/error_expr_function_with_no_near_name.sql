-- error: Functions are ABS
-- fixed: zzz(t) => UPPER(t)
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT zzz(t)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
