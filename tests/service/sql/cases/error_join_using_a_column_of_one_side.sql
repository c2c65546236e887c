-- error: unknown column "id"
-- fixed: USING (id) => ON s.k = d.id
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p USING (id);
