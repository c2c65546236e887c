-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING; key id] ON s.payload.user.id = d.id | SELECT d.name AS x
-- with: d_named s_nested out_string
INSERT INTO o SELECT d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.payload.`user`.id = d.id;
