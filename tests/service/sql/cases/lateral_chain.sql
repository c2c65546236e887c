-- plan: INNER JOIN d AS a mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.k = a.id | INNER JOIN d AS b mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON CAST(s.n AS BIGINT) = b.id AND a.name = b.name | SELECT s.k AS x, b.name AS y | WHERE (s.t <> b.name)
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, b.name FROM s, LATERAL TABLE(d(s.p)) AS a, LATERAL TABLE(d(s.p)) AS b WHERE b.id = s.n AND a.id = s.k AND b.name = a.name AND s.t <> b.name;
