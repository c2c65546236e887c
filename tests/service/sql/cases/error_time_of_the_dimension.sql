-- error: unknown table or alias "d"
-- fixed: OF d.since => OF s.p
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF d.since ON s.k = d.id;
