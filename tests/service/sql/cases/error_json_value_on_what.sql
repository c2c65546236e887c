-- error: expected EMPTY or ERROR
-- fixed: NOTHING => EMPTY
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT JSON_VALUE(t, '$.a' NULL ON NOTHING)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
