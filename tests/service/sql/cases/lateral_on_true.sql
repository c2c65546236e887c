-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.k = d.id
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s JOIN LATERAL TABLE(d(s.p)) AS d ON TRUE WHERE s.k = d.id AND d.name <> 'x';
