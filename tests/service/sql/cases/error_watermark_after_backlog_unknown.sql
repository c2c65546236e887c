-- error: option "scan.watermark.use-processing-time" is "always"
-- with: d_since
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'scan.watermark.use-processing-time' = 'always'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
