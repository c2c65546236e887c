-- error: cannot cast TIMESTAMP(3) to BIGINT
-- fixed: CAST(ts AS BIGINT) => CAST(CAST(ts AS STRING) AS BIGINT)
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT CAST(ts AS BIGINT)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
