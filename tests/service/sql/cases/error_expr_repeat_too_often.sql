-- error: REPEAT may make a text more than
-- fixed: 2000000000 => 2000
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT REPEAT(t, 2000000000)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
