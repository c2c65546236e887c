-- error: HOUR takes TIME or TIMESTAMP, not DATE
-- fixed: HOUR(dt) => HOUR(CAST(dt AS TIMESTAMP(3)))
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT HOUR(dt)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
