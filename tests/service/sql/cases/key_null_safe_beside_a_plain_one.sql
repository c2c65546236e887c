-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id INT NOT NULL, dec DECIMAL(6, 2), whole DECIMAL(6, 0), big BIGINT, f FLOAT, r DOUBLE, day_ DATE, ts TIMESTAMP(3), ts6 TIMESTAMP(6); key id] ON s.ts = d.ts AND s.k IS NOT DISTINCT FROM d.big
-- with: d_all_keys s_all_types out_bigint
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON d.ts = s.ts AND d.big IS NOT DISTINCT FROM s.k;
