-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND) | WAIT until the watermark of s and d has reached the record's time | INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3); key id] ON s.k = d.id AS OF s.ts
-- with: d_versions s_event_time out_bigint_string
CREATE VIEW v AS SELECT k AS key, ts AS at FROM s WHERE n > 1;
INSERT INTO o SELECT v.key, d.name FROM v JOIN d FOR SYSTEM_TIME AS OF v.at ON v.key = d.id;
