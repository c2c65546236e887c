-- plan: INNER JOIN e AS e mysql-cdc(shop.d @ db:3306) [id BIGINT, name STRING NOT NULL, price DECIMAL(10, 2); key name] ON s.k = e.id
-- with: d_price s_plain out_bigint_string
CREATE TABLE e (PRIMARY KEY (name) NOT ENFORCED) LIKE d (EXCLUDING CONSTRAINTS);
INSERT INTO o SELECT s.k, e.name FROM s JOIN e FOR SYSTEM_TIME AS OF s.p ON s.k = e.id;
