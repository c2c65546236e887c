-- error: the length must be a literal up to 65,536
-- fixed: CAST(t AS CHAR(2000000000)) => LPAD(t, 10, '0')
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT CAST(t AS CHAR(2000000000))
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
