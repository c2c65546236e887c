-- error: expected a unit, found "HOURS"
-- fixed: TO HOURS => TO HOUR
-- with: d_priced s_all_types out_timestamp
INSERT INTO o SELECT FLOOR(ts TO HOURS)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
