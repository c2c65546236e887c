-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.k = d.id | SELECT s.k AS x, d.name AS y
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT k, PROCTIME() AS now FROM s;
INSERT INTO o SELECT v.k, d.name FROM v JOIN d FOR SYSTEM_TIME AS OF v.now ON v.k = d.id;
