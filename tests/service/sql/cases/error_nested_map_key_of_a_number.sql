-- error: expected STRING
-- fixed: labels[1] => labels['key']
-- with: d_named s_nested out_string
INSERT INTO o SELECT labels[1] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
