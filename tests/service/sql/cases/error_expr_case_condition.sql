-- error: a WHEN condition is INT, expected BOOLEAN
-- fixed: WHEN n THEN => WHEN n = 1 THEN
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT CASE WHEN n THEN 1 END
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
