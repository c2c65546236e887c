-- error: REPLACE takes 3 arguments, not 2
-- fixed: REPLACE(t, 'a') => REPLACE(t, 'a', 'b')
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT REPLACE(t, 'a')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
