-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3); key id] ON s.k = d.id AS OF s.ts | WAIT until the watermark of s and d has reached the record's time | GROUP BY window_start, window_end, d.name AS k0 | AGGREGATE SUM((s.amount * d.price):DECIMAL(19, 5)):DECIMAL(38, 5) AS a0
-- with: d_versions s_event_time
CREATE TABLE o (at TIMESTAMP(3), name STRING, total DECIMAL(38, 5)) WITH ('connector' = 'blackhole');
CREATE VIEW j AS SELECT s.ts AS at, d.name, s.amount * d.price AS cost FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
INSERT INTO o SELECT window_start, name, SUM(cost)
FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(at), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, name;
