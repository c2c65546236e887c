-- error: key "d.id" is INT, compared with BYTES
-- fixed: s.b = d.id => s.n = d.id
-- with: d_all_keys s_all_types out_bigint
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.b = d.id;
