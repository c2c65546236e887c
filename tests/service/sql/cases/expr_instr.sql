-- plan: SELECT CAST(POSITION('a', s.t) AS STRING) AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT CAST(INSTR(t, 'a') AS STRING)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
