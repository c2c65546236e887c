-- plan: SELECT (CHAR_LENGTH(s.t) + CHAR_LENGTH(d.name)) AS x
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT CHAR_LENGTH(t) + CHARACTER_LENGTH(d.name)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
