-- error: Write JSON_QUERY(text
-- fixed: WITH) => RETURNING STRING WITH WRAPPER NULL ON EMPTY NULL ON ERROR)
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT JSON_QUERY(t, '$.a' WITH)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
