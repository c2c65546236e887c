-- error: array[1] or map['key']
-- fixed: labels[1 FROM => labels['key'] FROM
-- with: d_named s_nested out_string
INSERT INTO o SELECT labels[1 FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
