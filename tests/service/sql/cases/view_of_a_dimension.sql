-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.k = d.id AND (CAST(d.price AS DECIMAL(12, 2)) > 1:DECIMAL(12, 2)) | SELECT s.k AS x, UPPER(d.name) AS y
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT id AS key, UPPER(name) AS label FROM d WHERE price > 1;
INSERT INTO o SELECT s.k, r.label FROM s JOIN v FOR SYSTEM_TIME AS OF s.p AS r ON s.k = r.key;
