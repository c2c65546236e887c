-- plan: INNER JOIN d AS buyer mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), level INT, since TIMESTAMP(3); key id] ON s.k = buyer.id | LEFT JOIN d AS seller mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), level INT, since TIMESTAMP(3); key id] ON CAST(s.n AS BIGINT) = seller.id
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT buyer.id FROM s JOIN d FOR SYSTEM_TIME AS OF s.p AS buyer ON s.k = buyer.id LEFT JOIN d FOR SYSTEM_TIME AS OF s.p AS seller ON s.n = seller.id;
