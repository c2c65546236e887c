-- error: which has no elements
-- fixed: payload[1] => payload.user_id
-- with: d_named s_nested out_bigint
INSERT INTO o SELECT payload[1] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
