-- plan: SELECT s.payload.user_id AS x
-- with: d_named s_nested out_bigint
INSERT INTO o SELECT payload.user_id FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
