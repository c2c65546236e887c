-- error: ABS(…) OVER (…) keeps the rows before each one
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT ABS(n) OVER (ORDER BY k)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
