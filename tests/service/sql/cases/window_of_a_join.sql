-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3); key id] ON s.k = d.id AS OF s.ts | WAIT until the watermark of s and d has reached the record's time | GROUP BY window_start, window_end, d.name AS k0 | AGGREGATE SUM((s.amount * d.price):DECIMAL(19, 5)):DECIMAL(38, 5) AS a0
CREATE TABLE d (id BIGINT, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR since AS since) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), name STRING, total DECIMAL(38, 5)) WITH ('connector' = 'blackhole');
CREATE VIEW j AS SELECT s.ts AS at, d.name, s.amount * d.price AS cost FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
INSERT INTO o SELECT window_start, name, SUM(cost)
FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(at), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, name;
