-- error: Write JSON_ARRAY(x, y NULL ON NULL)
-- fixed: ON EMPTY => ON NULL
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT JSON_ARRAY(t, n NULL ON EMPTY)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
