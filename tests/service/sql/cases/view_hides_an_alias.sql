-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.k = d.id | INNER JOIN d AS d_2 mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON CAST(s.n AS BIGINT) = d_2.id | SELECT s.k AS x, d_2.name AS y
-- with: d_price s_plain out_bigint_string
CREATE VIEW e AS SELECT s.*, d.name AS first FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
INSERT INTO o SELECT e.k, d.name FROM e JOIN d FOR SYSTEM_TIME AS OF e.p ON e.n = d.id;
