-- error: IN has operands of INT and STRING
-- fixed: n IN (1, 'a') => CAST(n AS STRING) IN ('1', 'a')
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT n IN (1, 'a')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
