-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.k = (d.id + 1:BIGINT)
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT id + 1 AS id FROM d;
INSERT INTO o SELECT s.k, s.t FROM s JOIN v FOR SYSTEM_TIME AS OF s.p ON s.k = v.id;
