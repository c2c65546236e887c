-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id INT NOT NULL, dec DECIMAL(6, 2), whole DECIMAL(6, 0), big BIGINT, f FLOAT, r DOUBLE, day_ DATE, ts TIMESTAMP(3), ts6 TIMESTAMP(6); key id] ON s.k IS NOT DISTINCT FROM d.id (key TRY_CAST(s.k AS INT)) AND s.t IS NOT DISTINCT FROM d.day_ (key TRY_CAST(s.t AS DATE))
-- with: d_all_keys s_all_types out_bigint
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k IS NOT DISTINCT FROM d.id AND s.t IS NOT DISTINCT FROM d.day_;
