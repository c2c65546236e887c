-- error: Write JSON_OBJECT(KEY
-- fixed: KEY 'a' => KEY 'a' VALUE t, KEY 'b' VALUE n ABSENT ON NULL
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT JSON_OBJECT(KEY 'a')
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
