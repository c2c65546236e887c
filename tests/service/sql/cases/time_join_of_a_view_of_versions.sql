-- plan: WATERMARK d.since AS since | INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3); key id] ON s.k = d.id AND (CAST(d.price AS DECIMAL(12, 2)) > 1:DECIMAL(12, 2)) AS OF s.ts
-- with: d_versions s_event_time out_bigint_string
CREATE VIEW v AS SELECT id, name, since FROM d WHERE price > 1;
INSERT INTO o SELECT s.k, v.name FROM s JOIN v FOR SYSTEM_TIME AS OF s.ts ON s.k = v.id;
