-- error: the watermark of "ts" is BIGINT, expected TIMESTAMP(3)
-- with: d_since
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS k) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
