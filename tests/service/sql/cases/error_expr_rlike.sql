-- error: RLIKE is not supported
-- fixed: t RLIKE 'a.*' => REGEXP(t, '^a')
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT t RLIKE 'a.*'
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
