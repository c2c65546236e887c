-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.t = LOWER(d.name) AND CAST(s.n AS DECIMAL(10, 0)) = CEIL(d.price):DECIMAL(10, 0) AND (s.k > 3:BIGINT)
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON LOWER(d.name) = s.t AND s.k > 3 AND CEIL(d.price) = s.n;
