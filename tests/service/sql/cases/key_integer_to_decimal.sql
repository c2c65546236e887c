-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id INT NOT NULL, dec DECIMAL(6, 2), whole DECIMAL(6, 0), big BIGINT, f FLOAT, r DOUBLE, day_ DATE, ts TIMESTAMP(3), ts6 TIMESTAMP(6); key id] ON CAST(s.tiny AS DECIMAL(6, 2)) = d.dec AND TRY_CAST(s.k AS DECIMAL(6, 0)) = d.whole
-- with: d_all_keys s_all_types out_bigint
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.tiny = d.dec AND s.k = d.whole;
