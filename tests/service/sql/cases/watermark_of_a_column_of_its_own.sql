-- plan: WATERMARK s.ts AS s.wm
-- with: d_since
CREATE TABLE s (k BIGINT, wm TIMESTAMP(3), ts TIMESTAMP(3), WATERMARK FOR ts AS wm) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
