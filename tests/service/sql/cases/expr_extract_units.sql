-- plan: SELECT (((YEAR(s.ts) * 100:BIGINT) + MONTH(s.dt)) + DAYOFMONTH(s.inst)) AS x
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT EXTRACT(YEAR FROM ts) * 100 + EXTRACT(MONTH FROM dt) + EXTRACT(DAY FROM inst)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
