-- plan: SELECT (CAST(s.dt AS TIMESTAMP(3)) <= s.ts) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT dt <= ts
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
