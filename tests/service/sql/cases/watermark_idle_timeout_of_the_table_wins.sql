-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND)
-- with: d_since
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'scan.watermark.idle-timeout' = '0 s'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
SET 'table.exec.source.idle-timeout' = '1 min';
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
