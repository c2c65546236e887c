-- error: INSERT INTO … VALUES is not supported
-- fixed: VALUES (1) => SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id
-- with: d_priced s_all_types out_bigint
INSERT INTO o VALUES (1);
