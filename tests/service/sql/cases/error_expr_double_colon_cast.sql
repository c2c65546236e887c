-- error: unexpected "::"
-- fixed: k::INT => CAST(k AS INT)
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT k::INT
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
