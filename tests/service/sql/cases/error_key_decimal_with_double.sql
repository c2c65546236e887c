-- error: key "d.dec" is DECIMAL(6, 2), compared with DOUBLE
-- fixed: s.r = d.dec => CAST(s.r AS DECIMAL(6, 2)) = d.dec
-- with: d_all_keys s_all_types out_bigint
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.r = d.dec;
