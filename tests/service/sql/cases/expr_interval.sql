-- plan: SELECT (s.ts - INTERVAL '300' SECOND) AS x
-- with: d_priced s_all_types out_timestamp
INSERT INTO o SELECT ts - INTERVAL '5' MINUTE
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
