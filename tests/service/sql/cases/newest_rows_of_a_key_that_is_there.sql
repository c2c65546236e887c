-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3); key id] ON s.k = d.id AND (CAST(d.price AS DECIMAL(12, 2)) > 1:DECIMAL(12, 2))
-- with: s_plain d_since out_bigint_string
CREATE VIEW v AS SELECT id, name FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY since DESC) AS n FROM d WHERE price > 1) WHERE n = 1;
INSERT INTO o SELECT s.k, v.name FROM s JOIN v FOR SYSTEM_TIME AS OF s.p ON s.k = v.id;
