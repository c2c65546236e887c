-- error: takes no ROW
-- fixed: ON payload = d.id => ON payload.user_id = d.id
-- with: d_named s_nested out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON payload = d.id;
