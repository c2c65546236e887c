-- error: TIMESTAMPDIFF takes two TIMESTAMP_LTZ
-- fixed: inst, ts => inst, CAST(ts AS TIMESTAMP_LTZ(3))
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT TIMESTAMPDIFF(DAY, inst, ts)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
