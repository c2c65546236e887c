-- error: the index of MAP is STRING, expected INT
-- fixed: [t] => [1]
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT MAP[1, n][t]
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
