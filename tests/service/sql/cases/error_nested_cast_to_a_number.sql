-- error: cannot cast ROW
-- fixed: CAST(payload AS => CAST(payload.user_id AS
-- with: d_named s_nested out_bigint
INSERT INTO o SELECT CAST(payload AS BIGINT)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
