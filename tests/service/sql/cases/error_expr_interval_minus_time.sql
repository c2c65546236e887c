-- error: takes a time, not
-- fixed: INTERVAL '1' DAY - ts => ts - INTERVAL '1' DAY
-- with: d_priced s_all_types out_timestamp
INSERT INTO o SELECT INTERVAL '1' DAY - ts
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
