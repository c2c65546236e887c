-- plan: INNER JOIN d AS z mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), level INT, since TIMESTAMP(3); key id] ON a.k = z.id
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s AS a JOIN d FOR SYSTEM_TIME AS OF a.p AS z ON z.id = a.k;
