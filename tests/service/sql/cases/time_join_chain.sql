-- plan: WAIT until the watermark of s and d has reached the record's time | LEFT JOIN d AS b mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3); key id] ON CAST(s.n AS BIGINT) = b.id AS OF s.ts
-- with: d_versions s_event_time out_bigint_string
INSERT INTO o SELECT s.k, b.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts AS a ON s.k = a.id
LEFT JOIN d FOR SYSTEM_TIME AS OF s.ts AS b ON s.n = b.id;
