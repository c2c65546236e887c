-- error: UPPER takes STRING, not INT
-- fixed: UPPER(n) => UPPER(CAST(n AS STRING))
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT UPPER(n)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
