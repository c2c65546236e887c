-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON UPPER(s.t) IS NOT DISTINCT FROM UPPER(d.name)
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON UPPER(s.t) IS NOT DISTINCT FROM UPPER(d.name);
