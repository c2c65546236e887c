-- error: the pattern of SIMILAR TO is not valid
-- fixed: 'a!' => '(a|b)_%'
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT t SIMILAR TO 'a!' ESCAPE '!'
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
