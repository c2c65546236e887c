-- error: UPPER takes 1 arguments, not 2
-- fixed: UPPER(t, t) => UPPER(t)
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT UPPER(t, t)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
