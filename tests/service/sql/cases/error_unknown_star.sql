-- error: unknown table or alias "z"
-- fixed: z.* => s.k
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT z.* FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
