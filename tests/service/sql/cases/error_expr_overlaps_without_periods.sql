-- error: OVERLAPS takes two periods
-- fixed: ts OVERLAPS ts => (ts, ts) OVERLAPS (ts, INTERVAL '1' HOUR)
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT ts OVERLAPS ts
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
