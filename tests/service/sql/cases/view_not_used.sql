-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.k = d.id | SELECT s.k AS x, d.name AS y
-- with: d_price s_plain out_bigint_string … join_name
CREATE VIEW v AS SELECT 1 AS one FROM s;
CREATE VIEW IF NOT EXISTS v AS SELECT k FROM s;
