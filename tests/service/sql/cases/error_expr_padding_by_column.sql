-- error: the length must be a literal up to 65,536
-- fixed: LPAD(t, n, '0') => LPAD(t, 10, '0')
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT LPAD(t, n, '0')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
