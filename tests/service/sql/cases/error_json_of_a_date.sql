-- error: JSON_STRING takes no DATE
-- fixed: (dt) => (CAST(dt AS STRING))
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT JSON_STRING(dt)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
