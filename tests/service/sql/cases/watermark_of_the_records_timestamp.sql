-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '1' SECOND) | WAIT until the watermark of s has reached the record's time
-- with: d_since
CREATE TABLE s (k BIGINT, ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
