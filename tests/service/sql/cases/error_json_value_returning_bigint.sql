-- error: RETURNING BIGINT is not supported
-- fixed: JSON_VALUE(t, '$.a' RETURNING BIGINT) => CAST(JSON_VALUE(t, '$.a') AS BIGINT)
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT JSON_VALUE(t, '$.a' RETURNING BIGINT)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
