-- error: the pattern of DATE_FORMAT has "bb"
-- fixed: 'yyyybb' => 'yyyy''bb'''
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT DATE_FORMAT(ts, 'yyyybb')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
