-- error: Write TIMESTAMPADD(DAY, 1, x)
-- fixed: DAY 1 => DAY, 1
-- with: d_priced s_all_types out_timestamp
INSERT INTO o SELECT TIMESTAMPADD(DAY 1, ts)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
