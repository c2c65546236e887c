-- error: JSON(text) stands outside
-- fixed: SELECT JSON(t) => SELECT JSON_OBJECT(KEY 'a' VALUE JSON(t))
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT JSON(t)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
