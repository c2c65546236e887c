-- plan: SELECT s.payload.user.mail AS x
-- with: d_named s_nested out_string
INSERT INTO o SELECT s.payload.`user`.mail FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
