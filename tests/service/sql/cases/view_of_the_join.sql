-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset) [k BIGINT, n INT, t STRING, p = PROCTIME()] | LEFT JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.k = d.id | SELECT s.k AS x, UPPER(d.name) AS y | WHERE (d.name <> 'x')
-- with: d_price s_plain out_bigint_string
CREATE TEMPORARY VIEW e (key, name) AS SELECT s.k, UPPER(d.name) FROM s LEFT JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id WHERE d.name <> 'x';
INSERT INTO o SELECT * FROM e;
