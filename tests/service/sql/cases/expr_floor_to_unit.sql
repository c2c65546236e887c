-- plan: SELECT FLOOR_TO(s.ts, 'HOUR') AS x
-- with: d_priced s_all_types out_timestamp
INSERT INTO o SELECT FLOOR(ts TO HOUR)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
