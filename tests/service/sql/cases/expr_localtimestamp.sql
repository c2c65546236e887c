-- plan: SELECT CAST(PROCTIME() AS TIMESTAMP(3)) AS x
-- with: d_priced s_all_types out_timestamp
INSERT INTO o SELECT LOCALTIMESTAMP
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
