-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND) | WATERMARK d.since AS since | WAIT until the watermark of s and d has reached the record's time | LATE records INTO the job's own table | INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3); key id] ON s.k = d.id AS OF s.ts
-- with: d_versions s_event_time out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
