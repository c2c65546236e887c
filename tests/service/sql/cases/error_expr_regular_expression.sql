-- error: the regular expression of REGEXP_REPLACE is not valid
-- fixed: '(' => '()'
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT REGEXP_REPLACE(t, '(', '')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
