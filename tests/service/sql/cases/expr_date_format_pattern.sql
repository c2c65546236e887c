-- plan: SELECT DATE_FORMAT(s.ts, 'dd MMM yyyy') AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT DATE_FORMAT(ts, 'dd MMM yyyy')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
