-- plan: SELECT CONCAT(LPAD(s.t, 5, '0'), RPAD(s.t, 5, ' ')) AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT LPAD(t, 5, '0') || RPAD(t, 5, ' ')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
