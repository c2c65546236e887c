-- plan: SELECT DATE_FORMAT(s.ts, 'yyyy-MM-dd''T''HH:mm') AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT DATE_FORMAT(ts, 'yyyy-MM-dd''T''HH:mm')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
