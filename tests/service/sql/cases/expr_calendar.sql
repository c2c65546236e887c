-- plan: SELECT CAST((((QUARTER(s.ts) + WEEK(s.dt)) + DAYOFWEEK(s.inst)) + DAYOFYEAR(s.ts)) AS STRING) AS x
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT CAST(QUARTER(ts) + WEEK(dt) + EXTRACT(DOW FROM inst) + DAYOFYEAR(ts) AS STRING)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
