-- error: Write TIMESTAMPDIFF(DAY, first, second)
-- fixed: DAY ts => DAY, ts
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT TIMESTAMPDIFF(DAY ts, ts)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
