-- error: the time column "ts" is TIMESTAMP(6)
-- fixed: TIMESTAMP(6) => TIMESTAMP(3)
-- with: d_since
CREATE TABLE s (k BIGINT, ts TIMESTAMP(6), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
