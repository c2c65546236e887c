-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset) [k BIGINT, n INT, t STRING, p = PROCTIME()] | INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.k = d.id | SELECT s.k AS x, d.name AS y | WHERE ((s.n > 1) AND (s.t = 'a'))
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT * FROM s WHERE n > 1;
CREATE VIEW w AS SELECT k, p FROM v WHERE t = 'a';
INSERT INTO o SELECT w.k, d.name FROM w JOIN d FOR SYSTEM_TIME AS OF w.p ON w.k = d.id;
