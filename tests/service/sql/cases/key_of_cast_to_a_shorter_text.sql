-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), level INT, since TIMESTAMP(3); key id] ON s.t = LEFT(CAST(d.id AS STRING), 3)
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON CAST(d.id AS VARCHAR(3)) = s.t;
