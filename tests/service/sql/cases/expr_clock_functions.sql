-- plan: SELECT (((((HOUR(s.ts) + MINUTE(s.tm)) + SECOND(s.inst)) + YEAR(s.dt)) + MONTH(s.dt)) + DAYOFMONTH(s.dt)) AS x
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT HOUR(ts) + MINUTE(tm) + SECOND(inst) + YEAR(dt) + MONTH(dt) + DAYOFMONTH(dt)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
