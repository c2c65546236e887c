-- plan: WATERMARK d.since AS (since - INTERVAL '0.25' SECOND), idle after 30000 ms | WAIT until the watermark of s and d has reached the record's time
CREATE TABLE d (id BIGINT, name STRING, since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED,
    WATERMARK FOR since AS since - INTERVAL '0.250' SECOND) WITH ('connector' = 'delta', 'path' = 'd', 'scan.watermark.idle-timeout' = '30 s');
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
