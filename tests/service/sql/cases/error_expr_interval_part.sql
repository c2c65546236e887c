-- error: MONTH of INTERVAL DAY TO SECOND
-- fixed: MONTH => DAY
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT EXTRACT(MONTH FROM INTERVAL '1' DAY)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
