-- error: CASE has operands of INT and STRING
-- fixed: ELSE 'a' => ELSE CAST('a' AS INT)
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT CASE WHEN ok THEN 1 ELSE 'a' END
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
