-- plan: LEFT JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.k = d.id | SELECT s.k AS x, CASE WHEN (d.id IS NOT NULL) THEN COALESCE(d.name, '-') END AS y
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT id, COALESCE(name, '-') AS label FROM d;
INSERT INTO o SELECT s.k, v.label FROM s LEFT JOIN v FOR SYSTEM_TIME AS OF s.p ON s.k = v.id;
