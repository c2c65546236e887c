-- error: unknown table or alias "d"
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF d.since ON s.k = d.id;
