-- error: "<" takes no ROW
-- fixed: payload < payload => payload.user_id < payload.user_id
-- with: d_named s_nested out_boolean
INSERT INTO o SELECT payload < payload
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
