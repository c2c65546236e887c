-- error: expected END
-- fixed: THEN 1 => THEN 1 END
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT CASE WHEN ok THEN 1
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
