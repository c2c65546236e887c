-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset) [k BIGINT, n INT, t STRING, p = PROCTIME()] | INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON (s.k + 1:BIGINT) = d.id | SELECT (s.k + 1:BIGINT) AS x, d.name AS y | WHERE (s.n > 1)
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT k + 1 AS id, p AS at FROM s WHERE n > 1;
INSERT INTO o SELECT v.id, d.name FROM v JOIN d FOR SYSTEM_TIME AS OF v.at ON v.id = d.id;
