-- plan: SELECT (CAST(s.ts AS TIMESTAMP_LTZ(3)) = s.inst) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT ts = inst
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
