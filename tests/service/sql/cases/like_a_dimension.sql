-- plan: INNER JOIN e AS d mysql-cdc(shop.e @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.k = d.id
-- with: d_price s_plain out_bigint_string
CREATE TABLE e WITH ('table-name' = 'e') LIKE d (INCLUDING ALL OVERWRITING OPTIONS);
INSERT INTO o SELECT s.k, d.name FROM s JOIN e FOR SYSTEM_TIME AS OF s.p AS d ON s.k = d.id;
