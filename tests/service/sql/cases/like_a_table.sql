-- plan: FROM s AS s kafka(base @ broker:9092, earliest-offset) [k BIGINT, n INT, t STRING, p = PROCTIME()] | INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.k = d.id
-- with: d_price out_bigint_string base … join_name
CREATE TABLE s LIKE base;
