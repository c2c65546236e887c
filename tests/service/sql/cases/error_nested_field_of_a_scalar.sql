-- error: which has no fields
-- fixed: n.x => payload.user_id
-- with: d_named s_nested out_bigint
INSERT INTO o SELECT n.x FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
