-- plan: SELECT (POSITION('a', s.t) + POSITION('b', s.t)) AS x
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT POSITION('a' IN t) + LOCATE('b', t)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
