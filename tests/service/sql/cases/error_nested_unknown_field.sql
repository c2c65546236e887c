-- error: unknown field "usr_id"
-- fixed: usr_id => user_id
-- with: d_named s_nested out_bigint
INSERT INTO o SELECT payload.usr_id FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
