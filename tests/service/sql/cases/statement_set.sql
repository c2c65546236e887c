-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.k = d.id | SELECT s.k AS x, d.name AS y
-- with: d_price s_plain out_bigint_string
EXECUTE STATEMENT SET BEGIN
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
END;
