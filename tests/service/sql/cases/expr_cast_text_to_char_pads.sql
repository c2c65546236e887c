-- plan: SELECT RPAD(CAST(s.n AS STRING), 4, ' ') AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT CAST(n AS CHAR(4))
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
