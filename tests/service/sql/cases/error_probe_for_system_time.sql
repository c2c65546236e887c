-- error: the first table is the stream
-- fixed: FROM s FOR SYSTEM_TIME AS OF p => FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s FOR SYSTEM_TIME AS OF p;
