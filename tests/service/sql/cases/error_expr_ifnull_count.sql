-- error: IFNULL takes 2 arguments, not 1
-- fixed: IFNULL(t) => IFNULL(t, 'x')
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT IFNULL(t)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
