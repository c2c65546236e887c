-- plan: SELECT CONCAT(TRIM(s.t), TRIM(s.t, 'x'), LTRIM(s.t), RTRIM(s.t, 'y')) AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT TRIM(t) || TRIM(BOTH 'x' FROM t) || TRIM(LEADING FROM t) || TRIM(TRAILING 'y' FROM t)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
