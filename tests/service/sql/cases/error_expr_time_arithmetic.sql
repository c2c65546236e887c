-- error: Add an INTERVAL to a time or subtract one
-- fixed: ts - ts => TIMESTAMPDIFF(SECOND, ts, ts)
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT ts - ts
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
