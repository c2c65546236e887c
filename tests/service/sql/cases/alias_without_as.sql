-- plan: FROM s AS a kafka(s @ broker:9092, earliest-offset) [k BIGINT, n INT, tiny TINYINT, t STRING, amount DECIMAL(8, 3), r DOUBLE, f FLOAT, ok BOOLEAN, b BYTES, dt DATE, tm TIME(0), ts TIMESTAMP(3), inst TIMESTAMP_LTZ(3), p = PROCTIME()] | INNER JOIN d AS z mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), level INT, since TIMESTAMP(3); key id] ON a.k = z.id
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT a.k FROM s a JOIN d FOR SYSTEM_TIME AS OF a.p z ON z.id = a.k;
