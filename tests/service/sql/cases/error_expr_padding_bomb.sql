-- error: the length must be a literal up to 65,536
-- fixed: 2000000000 => 10
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT RPAD(t, 2000000000, 'x')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
